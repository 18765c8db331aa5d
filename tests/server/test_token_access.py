"""Tokens and JWTs over HTTP: whom they act for, what they are limited to, and that nothing tells of more."""

import contextlib
import time
import uuid
from http.client import HTTPConnection

import pytest
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from fastmcp.server.auth.providers.jwt import RSAKeyPair
from processes import new_bank, start_http

from hindsight.authentication import REMEMBERED_SECONDS, jwt_scope, jwt_verifier
from hindsight.config import Settings
from hindsight.errors import ConfigurationError
from hindsight.http_server import needs_token, refuse_open_door
from tests.conftest import Database

KEYS = RSAKeyPair.generate()
ISSUER, AUDIENCE = "https://issuer.example", "hindsight"
SECRET = "Alice 的秘密：the merger closes on 9 May"


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def service(shared_url, login):
    """The login of a server: a service, and no operator."""
    return login(shared_url, "hindsight_service")


@pytest.fixture(scope="module")
def open_server(directory, service):
    """A server on all addresses that knows tokens of the database and JWTs, and has none of its own."""
    server = start_http(
        directory, database_url=service, bank=new_bank(), host="0.0.0.0",
        jwt_issuer=ISSUER, jwt_audience=AUDIENCE, jwt_public_key=KEYS.public_key,
    )  # fmt: skip
    yield server
    assert server.end() == 0


@pytest.fixture
def agent(db, own):
    """An agent that owns a bank: its name, and a maker of tokens for it."""
    name = f"agent-{uuid.uuid4().hex[:8]}"
    db.call("grant_access", bank=own, principal=name, rights="owner")

    def token(**limits):
        return db.one("create_token", name=f"t-{uuid.uuid4().hex[:8]}", principal=name, **limits)["create_token"]

    token.principal = name
    return token


def jwt(subject, **more):
    given = {"issuer": ISSUER, "audience": AUDIENCE, **more}
    return KEYS.create_token(subject=subject, **given)


def test_a_token_acts_for_its_principal_in_rest(open_server, agent, own, db):
    sent = bearer(agent())
    stored = open_server.ask("POST", "/api/memory", {"bank": own, "content": "汇率接口每天更新"}, **sent)
    assert stored.status == 201
    assert [
        one["content"] for one in open_server.ask("POST", "/api/recall", {"bank": own, "query": "汇率"}, **sent).json
    ] == ["汇率接口每天更新"]
    history = open_server.ask("GET", f"/api/memory/{stored.json['memory_id']}/history?bank={own}", **sent).json
    assert [event["principal"] for event in history] == [agent.principal]


@pytest.mark.parametrize("transport", ["mcp", "sse"])
async def test_and_over_both_transports_of_mcp(open_server, agent, own, transport):
    kind = StreamableHttpTransport if transport == "mcp" else SSETransport
    async with Client(kind(f"{open_server.url}/{transport}", headers=bearer(agent()))) as client:
        await client.call_tool("memory_store", {"content": "The port is 22", "bank": own})
        found = (await client.call_tool("memory_recall", {"query": "port", "bank": own})).structured_content
    assert [one["content"] for one in found["memories"]] == ["The port is 22"]


def test_a_bank_of_others_is_unknown_to_it_like_one_that_there_is_not(open_server, agent, db):
    theirs = new_bank()
    db.call("create_bank", bank=theirs)
    db.call("store", bank=theirs, content=SECRET)
    sent = bearer(agent())
    for method, path, body in (
        ("POST", "/api/recall", {"query": "merger"}), ("POST", "/api/memory", {"content": "x y z"}), ("GET", "/api/pending", None),
        ("GET", "/api/queue", None), ("POST", "/api/context", {"query": "merger"}), ("POST", "/api/maintain", {}),
    ):  # fmt: skip
        answers = [open_server.ask(method, f"{path}?bank={bank}", body, **sent) for bank in (theirs, "no-such-bank")]
        assert answers[0].status == answers[1].status == 404, (path, answers[0].text)
        assert answers[0].text.replace(theirs, "…") == answers[1].text.replace("no-such-bank", "…")


@pytest.mark.parametrize(
    ("rights", "reads", "adds", "changes"), [("reader", 1, 0, 0), ("adder", 0, 1, 0), ("writer", 1, 1, 1)]
)
def test_its_rights_hold_although_its_principal_owns_the_bank(
    open_server, agent, own, db, rights, reads, adds, changes
):
    memory = db.one("store", bank=own, content="The port is 22")["memory_id"]
    sent = bearer(agent(rights=rights))
    asked = {
        "reads": open_server.ask("POST", "/api/recall", {"bank": own, "query": "port"}, **sent).status,
        "adds": open_server.ask("POST", "/api/memory", {"bank": own, "content": "The host is web-7"}, **sent).status,
        "changes": open_server.ask("PATCH", f"/api/memory/{memory}", {"bank": own, "tags": ["x"]}, **sent).status,
    }
    assert asked == {"reads": 200 if reads else 403, "adds": 201 if adds else 403, "changes": 200 if changes else 403}


def test_its_banks_hold_although_its_principal_has_others(open_server, agent, own, db):
    other = new_bank()
    db.call("create_bank", bank=other)
    db.call("grant_access", bank=other, principal=agent.principal, rights="owner")
    sent = bearer(agent(banks=[own]))
    assert open_server.ask("POST", "/api/recall", {"bank": own, "query": "x"}, **sent).status == 200
    assert open_server.ask("POST", "/api/recall", {"bank": other, "query": "x"}, **sent).status == 404


@pytest.mark.parametrize("path", ["/api/recall", "/api/context"])
def test_it_recalls_in_several_banks_only_where_each_lets_it(open_server, agent, own, db, path):
    team, theirs = new_bank(), new_bank()
    for bank, content in ((own, "The port is 8022"), (team, "预发布服务器的端口是 8022"), (theirs, SECRET)):
        if bank != own:
            db.call("create_bank", bank=bank)
        db.call("store", bank=bank, content=content)
    db.call("grant_access", bank=team, principal=agent.principal, rights="reader")
    for limits, banks, status in (
        ({}, [own, team], 200), ({"rights": "reader"}, [own, team], 200), ({"banks": [own]}, [own, team], 404),
        ({"rights": "adder"}, [own, team], 403), ({}, [own, team, theirs], 404), ({}, [theirs, own], 404),
    ):  # fmt: skip
        answer = open_server.ask("POST", path, {"banks": banks, "query": "8022 merger"}, **bearer(agent(**limits)))
        assert answer.status == status, (limits, banks, answer.text)
        assert "merger closes" not in answer.text
        if status == 200:
            found = answer.json if path == "/api/recall" else answer.json["memories"]
            assert {memory["bank"] for memory in found} == {own, team}
    sent = [{"banks": [own, bank], "query": "x"} for bank in (theirs, "no-such-bank")]
    hidden, absent = (open_server.ask("POST", path, one, **bearer(agent())).text for one in sent)
    assert hidden.replace(theirs, "…") == absent.replace("no-such-bank", "…")


def test_what_it_recalls_is_noted_in_its_name(open_server, agent, own, db):
    db.call("store", bank=own, content="The port is 22")
    open_server.ask("POST", "/api/recall", {"bank": own, "query": "port"}, **bearer(agent()))
    noted = "SELECT count(*) FROM hindsight.memory_use JOIN hindsight.bank USING (bank_id) WHERE name = %s"
    deadline = time.monotonic() + 10
    while not db.value(noted, (own,)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_revoked_token_is_refused_within_seconds(open_server, agent, own, db):
    name = f"t-{uuid.uuid4().hex[:8]}"
    sent = bearer(db.one("create_token", name=name, principal=agent.principal)["create_token"])
    assert open_server.ask("POST", "/api/recall", {"bank": own, "query": "x"}, **sent).status == 200
    db.call("revoke_token", name=name)
    deadline = time.monotonic() + REMEMBERED_SECONDS + 3
    while open_server.ask("POST", "/api/recall", {"bank": own, "query": "x"}, **sent).status != 401:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_whatever_holds_no_more_or_never_did_is_refused_alike(open_server, agent, own):
    over = agent(ttl="1 ms")
    answers = []
    for token in (over, "hs_" + "0" * 64, "open-sesame", "令牌".encode().decode("latin-1"), jwt("x", issuer="https://evil.example"), jwt("x", audience="other"),
                  jwt("x", expires_in_seconds=-10), RSAKeyPair.generate().create_token(subject="x", issuer=ISSUER, audience=AUDIENCE),
                  jwt("x")[:-4] + "AAAA"):  # fmt: skip
        answer = open_server.ask("POST", "/api/recall", {"bank": own, "query": "x"}, **bearer(token))
        assert answer.status == 401, token
        answers.append(answer.text)
        assert token not in answer.text
        assert token not in open_server.log
    assert len(set(answers)) == 1, "none tells why"
    assert open_server.ask("POST", "/api/recall", {"bank": own, "query": "x"}).status == 401


def test_a_jwt_acts_for_its_subject_within_its_scopes(open_server, agent, own):
    store = {"bank": own, "content": "The port is 22"}
    assert open_server.ask("POST", "/api/memory", store, **bearer(jwt(agent.principal))).status == 201
    reader = bearer(jwt(agent.principal, scopes=["hindsight:reader", "openid"]))
    assert open_server.ask("POST", "/api/recall", {"bank": own, "query": "port"}, **reader).status == 200
    assert open_server.ask("POST", "/api/memory", store, **reader).status == 403
    elsewhere = bearer(jwt(agent.principal, additional_claims={"hindsight_banks": ["another"]}))
    assert open_server.ask("POST", "/api/recall", {"bank": own, "query": "port"}, **elsewhere).status == 404


def test_a_jwt_that_names_the_servers_own_login_or_nobody_is_refused(open_server, own, service):
    me = service.partition("://")[2].partition("@")[0]
    for subject in (me, ""):
        assert open_server.ask("POST", "/api/recall", {"bank": own, "query": "x"}, **bearer(jwt(subject))).status == 401


@pytest.mark.parametrize(
    ("claims", "scopes", "scope"),
    [
        ({}, [], {}), ({}, ["openid"], {}), ({}, ["hindsight:reader"], {"rights": "reader"}), ({}, ["hindsight:admin"], {"rights": ""}),
        ({}, ["hindsight:reader", "hindsight:writer"], {"rights": "writer"}), ({"hindsight_banks": ["a", 1]}, [], {"banks": ["a"]}),
        ({"hindsight_banks": "a"}, [], {"banks": []}), ({"hindsight_banks": None}, [], {"banks": []}),
    ],
)  # fmt: skip
def test_the_scope_of_a_jwt_is_what_it_names(claims, scopes, scope):
    assert jwt_scope(claims, scopes) == scope


@pytest.mark.parametrize(
    "half",
    [{"jwt_issuer": ISSUER}, {"jwt_public_key": "x"}, {"jwt_issuer": ISSUER, "jwt_public_key": "x"},
     {"jwt_issuer": ISSUER, "jwt_audience": "x", "jwt_public_key": "x", "jwt_jwks_uri": "https://issuer.example/jwks"},
     {"jwt_issuer": ISSUER, "jwt_audience": "x", "jwt_public_key": "x", "jwt_algorithm": "none"}],
)  # fmt: skip
def test_half_a_configuration_of_jwts_is_told_at_the_start(half):
    with pytest.raises(ConfigurationError, match="HINDSIGHT_JWT"):
        jwt_verifier(Settings(**half))


def test_a_server_that_others_can_reach_starts_with_a_token_of_any_kind():
    refuse_open_door(Settings(host="0.0.0.0", token=None), has_tokens=True)
    refuse_open_door(Settings(host="0.0.0.0", jwt_issuer=ISSUER))
    assert needs_token(Settings(host="127.0.0.1", jwt_issuer=ISSUER))
    assert not needs_token(Settings(host="127.0.0.1"))


def test_without_any_valid_token_it_does_not_start(directory, new_database, template, login):
    url = new_database(template)
    db = Database(url)
    service = login(url, "hindsight_service")
    with pytest.raises(AssertionError, match="make a token"):
        start_http(directory, database_url=service, host="0.0.0.0")
    db.call("create_token", name="over", principal="agent-7", ttl="1 ms")
    with pytest.raises(AssertionError, match="make a token"):
        start_http(directory, database_url=service, host="0.0.0.0")
    db.call("create_token", name="laptop", principal="agent-7")
    server = start_http(directory, database_url=service, host="0.0.0.0")
    assert server.ask("GET", "/health").status == 200
    assert server.ask("POST", "/api/recall", {"query": "x"}).status == 401
    assert server.end() == 0
    db.close()


def test_on_plain_loopback_no_token_is_needed_and_one_that_is_sent_must_hold(http, agent, own, db):
    assert http.ask("POST", "/api/recall", {"query": "x"}).status == 200
    assert http.ask("POST", "/api/recall", {"query": "x"}, **bearer("wrong")).status == 401
    sent = bearer(agent(rights="reader"))
    assert http.ask("POST", "/api/recall", {"bank": own, "query": "x"}, **sent).status == 200
    assert http.ask("POST", "/api/memory", {"bank": own, "content": "x y z"}, **sent).status == 403


@contextlib.contextmanager
def stream(server, token):
    """A stream of /sse that a token has opened: the path to which its messages are posted."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/sse", headers=bearer(token))
    response = connection.getresponse()
    assert response.status == 200
    lines = iter(response.fp.readline, b"")
    yield next(line for line in lines if line.startswith(b"data:")).decode().removeprefix("data:").strip()
    connection.close()


def test_no_other_token_posts_into_a_stream_whose_session_it_knows(open_server, agent, own, db):
    other = f"agent-{uuid.uuid4().hex[:8]}"
    db.call("grant_access", bank=own, principal=other, rights="owner")
    theirs = db.one("create_token", name=f"t-{uuid.uuid4().hex[:8]}", principal=other)["create_token"]
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    mine, reading = agent(), jwt(agent.principal, scopes=["hindsight:reader"])
    strangers = {
        mine: (agent(), agent(rights="reader"), theirs, jwt(agent.principal), jwt(other)),
        reading: (mine, jwt(agent.principal), jwt(other, scopes=["hindsight:reader"])),
    }
    for opened_by, others in strangers.items():
        with stream(open_server, opened_by) as path:
            nowhere = f"{path[:-32]}{uuid.uuid4().hex}"
            assert open_server.ask("POST", path, message).status == 401
            for token in others:
                refused, absent = (open_server.ask("POST", to, message, **bearer(token)) for to in (path, nowhere))
                assert (refused.status, refused.text) == (absent.status, absent.text) == (404, "Could not find session")
            assert open_server.ask("POST", path, message, **bearer(opened_by)).status == 202


def test_the_figures_are_refused_to_whatever_acts_for_a_principal(open_server, agent):
    for token in (
        agent(),
        agent(rights="owner"),
        jwt(agent.principal),
        jwt(agent.principal, scopes=["hindsight:owner"]),
    ):
        answer = open_server.ask("GET", "/metrics", **bearer(token))
        assert (answer.status, answer.error["code"]) == (403, "access_denied")
        assert "hindsight_" not in answer.text
    assert open_server.ask("GET", "/metrics").status == 401


def test_metadata_of_somebody_else_is_only_data(open_server, agent, own, db):
    """Case A8: isolation never comes from metadata."""
    theirs = new_bank()
    db.call("create_bank", bank=theirs)
    metadata = {"user_id": "postgres", "bank": theirs, "bank_id": 1, "principal": "postgres"}
    body = {"bank": own, "content": "The port is 22", "metadata": metadata}
    assert open_server.ask("POST", "/api/memory", body, **bearer(agent())).status == 201
    assert db.contents(theirs) == []
    (found,) = open_server.ask("POST", "/api/recall", {"bank": own, "query": "port"}, **bearer(agent())).json
    assert found["metadata"] == metadata
    asked = {"bank": own, "query": "port", "metadata": {"bank": theirs}}
    assert len(open_server.ask("POST", "/api/recall", asked, **bearer(agent())).json) == 1


def test_an_id_of_anothers_memory_is_told_like_one_that_there_is_not(open_server, agent, own, db):
    """Case C4."""
    theirs = new_bank()
    db.call("create_bank", bank=theirs)
    hidden = str(db.one("store", bank=theirs, content=SECRET)["memory_id"])
    for method, path, body in (
        ("GET", "/api/memory/{}?bank={}", None), ("DELETE", "/api/memory/{}?bank={}", {"reason": "asked to"}),
        ("PATCH", "/api/memory/{}?bank={}", {"tags": ["x"]}), ("POST", "/api/memory/{}/confirm?bank={}", {}),
        ("GET", "/api/memory/{}/history?bank={}", None), ("GET", "/api/memory/{}/sources?bank={}", None),
        ("POST", "/api/memory/{}/restore?bank={}", {}),
    ):  # fmt: skip
        nobody = str(uuid.uuid4())
        answers = [open_server.ask(method, path.format(one, own), body, **bearer(agent())) for one in (hidden, nobody)]
        assert answers[0].status == answers[1].status, path
        assert answers[0].text.replace(hidden, "…") == answers[1].text.replace(nobody, "…")
