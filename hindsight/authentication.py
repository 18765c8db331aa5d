"""Who sends a request: the tokens that the HTTP server takes, by FastMCP's own verifiers, for MCP and REST alike."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastmcp.server.auth import AccessToken, TokenVerifier
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from hindsight.client import AsyncHindsight
from hindsight.config import Settings
from hindsight.errors import ConfigurationError, HindsightError
from hindsight.refusals import Refusal
from hindsight.results import TokenGrant

log = logging.getLogger("hindsight.server")

REMEMBERED_SECONDS = 2.0
"""For how long a token that was found in the database is not asked for again: one that is revoked is taken so long."""
MOST_REMEMBERED = 1000
_RIGHTS = ("reader", "adder", "writer", "owner")

Refuse = Callable[[Refusal, dict[str, str]], Callable[[Scope, Receive, Send], Awaitable[None]]]


class Tokens(TokenVerifier):
    """Verifies a bearer token: the server's own (HINDSIGHT_TOKEN), a JWT, or one of `hindsight token`.

    Whom it acts for, and within what, stands in the claims `principal` and `scope` of the AccessToken; the server's own
    has neither, and is the server itself.
    """

    def __init__(self, settings: Settings, client: Callable[[], AsyncHindsight]) -> None:
        super().__init__()
        self._settings = settings
        self._client = client
        self._jwt = jwt_verifier(settings)
        self._login: str | None = None
        self._found: dict[bytes, tuple[float, TokenGrant]] = {}

    async def verify_token(self, token: str) -> AccessToken | None:
        """What a token gives; None where it does not hold, or can't be looked up."""
        own = self._settings.token
        if own and hmac.compare_digest(token.strip().encode("latin-1", "replace"), own.get_secret_value().encode()):
            return AccessToken(token="", client_id="server", scopes=[])
        try:
            if self._jwt is not None and token.count(".") == 2:
                return await self._from_jwt(self._jwt, token)
            return await self._from_database(token)
        except HindsightError as error:
            log.warning("a token can't be looked up: %s", error)
            return None

    async def _from_database(self, token: str) -> AccessToken | None:
        digest, now = hashlib.sha256(token.encode()).digest(), time.monotonic()
        until, found = self._found.get(digest, (0.0, None))
        if until < now:
            found = await self._client().check_token(token)
            if len(self._found) >= MOST_REMEMBERED:
                self._found.clear()
            if found is None:
                self._found.pop(digest, None)
            else:
                self._found[digest] = (now + REMEMBERED_SECONDS, found)
        if found is None or (found.expires_at is not None and found.expires_at.timestamp() <= time.time()):
            return None
        claims = {"principal": found.principal, "scope": found.scope}
        return AccessToken(token="", client_id=f"token {found.name}", scopes=[], subject=found.principal, claims=claims)

    async def _from_jwt(self, verifier: JWTVerifier, token: str) -> AccessToken | None:
        verified = await verifier.verify_token(token)
        if verified is None:
            return None
        principal = verified.claims.get(self._settings.jwt_claim)
        if self._login is None:
            self._login = await self._client().principal()
        if not isinstance(principal, str) or not principal or principal == self._login:
            log.warning("a JWT names nobody that it may act for in %s", self._settings.jwt_claim)
            return None
        scope = jwt_scope(verified.claims, verified.scopes)
        claims = {"principal": principal, "scope": scope}
        # A stream of /sse is bound to client_id and subject: a JWT of other limits is another client.
        client_id = f"jwt {json.dumps(scope, sort_keys=True)}"
        return AccessToken(token="", client_id=client_id, scopes=[], subject=principal, claims=claims)


def jwt_scope(claims: dict[str, Any], scopes: Sequence[str]) -> dict[str, Any]:
    """What a JWT is limited to: a scope `hindsight:reader`, … gives the rights; the claim `hindsight_banks`."""
    scope: dict[str, Any] = {}
    named = [one.removeprefix("hindsight:") for one in scopes if one.startswith("hindsight:")]
    if named:  # the last of several; another name lets nobody in
        scope["rights"] = next((right for right in reversed(_RIGHTS) if right in named), "")
    if "hindsight_banks" in claims:
        banks = claims["hindsight_banks"]
        scope["banks"] = [bank for bank in banks if isinstance(bank, str)] if isinstance(banks, list) else []
    return scope


def jwt_verifier(settings: Settings) -> JWTVerifier | None:
    """FastMCP's verifier of JWTs; None where none is configured. Raises ConfigurationError for half a configuration."""
    keys = [settings.jwt_jwks_uri, settings.jwt_public_key]
    if not any((*keys, settings.jwt_issuer, settings.jwt_audience)):
        return None
    if sum(key is not None for key in keys) != 1 or not settings.jwt_issuer or not settings.jwt_audience:
        raise ConfigurationError(
            "JWTs need HINDSIGHT_JWT_ISSUER, HINDSIGHT_JWT_AUDIENCE, and one of HINDSIGHT_JWT_JWKS_URI and "
            "HINDSIGHT_JWT_PUBLIC_KEY: a JWT that was made for somebody else must not be taken"
        )
    try:
        return JWTVerifier(
            jwks_uri=settings.jwt_jwks_uri,
            public_key=settings.jwt_public_key,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            algorithm=settings.jwt_algorithm,
        )
    except ValueError as error:
        raise ConfigurationError(f"HINDSIGHT_JWT_ALGORITHM, or the key: {error}") from None


def caller() -> tuple[str, dict[str, Any]] | None:
    """Whom this request acts for, and within what; None: the server itself, as over stdio and on plain loopback."""
    token = get_access_token()
    if token is None or "principal" not in token.claims:
        return None
    return token.claims["principal"], token.claims["scope"]


_NOT_FOR_IT = Refusal(
    status=403,
    code="access_denied",
    message="the figures are those of all that use the server",
    hint="Send the server's own HINDSIGHT_TOKEN",
)


class Admission:
    """ASGI middleware behind FastMCP's, which has verified the token: refuses whoever has none that holds.

    needed: whether a request without any is refused as well; `/health` is for everybody.
    """

    def __init__(self, app: ASGIApp, needed: bool, refuse: Refuse) -> None:
        self._app = app
        self._needed = needed
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and scope["path"] == "/health"):
            return await self._app(scope, receive, send)
        given = Headers(scope=scope).get("authorization", "")
        user = scope.get("user")
        if isinstance(user, AuthenticatedUser) or not (given or self._needed):
            if (
                scope["path"] == "/metrics"
                and isinstance(user, AuthenticatedUser)
                and user.access_token.subject is not None
            ):
                return await self._refuse(_NOT_FOR_IT, {})(scope, receive, send)
            return await self._app(scope, receive, send)
        told = Refusal(
            status=401,
            code="unauthorized",
            message="the token does not hold" if given else "a token is needed",
            hint="Send Authorization: Bearer, with a token of `hindsight token create`, or HINDSIGHT_TOKEN",
        )
        challenge = 'Bearer realm="hindsight"' + (', error="invalid_token"' if given else "")
        return await self._refuse(told, {"WWW-Authenticate": challenge})(scope, receive, send)
