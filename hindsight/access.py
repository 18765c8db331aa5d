"""The part of the async client that decides who may use a bank, and which tokens the servers take.

`sync_access.py` is made from this file by `make generate`; change this one.
"""

from __future__ import annotations

import hashlib
from typing import cast

from hindsight.calls import Duration, Labels
from hindsight.embeddings import AsyncEmbeddings
from hindsight.results import AccessToken, Grant, TokenGrant


class AsyncAccess(AsyncEmbeddings):
    """Rights on banks, and tokens."""

    async def principal(self) -> str:
        """Who is asking: the login, or whom a service acts for."""
        return cast(str, await self._value("principal"))

    async def grant_access(self, bank: str, principal: str, rights: str, *, types: Labels | None = None) -> None:
        """Gives a principal rights on a bank, in place of those that it had. For its owner.

        rights: reader; adder (stores, and is told nothing of what the bank holds); writer; owner. types: the only types
        of memory that an adder or writer may write.
        """
        await self._value("grant_access", bank=bank, principal=principal, rights=rights, types=types)

    async def revoke_access(self, bank: str, principal: str) -> bool:
        """Takes a principal's rights on a bank; False where there were none. For its owner; the last owner stays."""
        return cast(bool, await self._value("revoke_access", bank=bank, principal=principal))

    async def access(self, bank: str) -> list[Grant]:
        """Who may do what in a bank. For its readers."""
        return await self._rows(Grant, "access", bank=bank)

    async def create_token(
        self,
        name: str,
        principal: str,
        *,
        banks: Labels | None = None,
        rights: str | None = None,
        ttl: Duration | None = None,
    ) -> str:
        """Makes a token of the servers that acts for a principal, and returns it: only now. For operators.

        banks, rights: what it is limited to, beneath what the principal may. ttl: it holds so long; else until revoked.
        """
        given = {"banks": banks, "rights": rights, "ttl": ttl}
        return cast(str, await self._value("create_token", name=name, principal=principal, **given))

    async def check_token(self, token: str) -> TokenGrant | None:
        """Whom a token acts for; None where it does not hold. Only its SHA-256 is sent. For servers."""
        digest = hashlib.sha256(token.encode()).digest()
        found = await self._rows(TokenGrant, "check_token", digest=digest)
        return found[0] if found else None

    async def access_tokens(self) -> list[AccessToken]:
        """The tokens, the newest first, without the secret of any. For operators and servers."""
        return await self._rows(AccessToken, "access_tokens")

    async def revoke_token(self, name: str) -> bool:
        """A token holds no more; False where it did not before. For operators and servers."""
        return cast(bool, await self._value("revoke_token", name=name))
