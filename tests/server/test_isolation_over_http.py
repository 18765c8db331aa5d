"""Random calls of MCP tools and REST routes by three principals with tokens: nobody is shown a word of a bank that it may not read.

Longer: ISOLATION_CALLS=3000 pytest tests/server/test_isolation_over_http.py
"""

import inspect
import os
import random
import re
import uuid
from urllib.parse import urlencode

import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from processes import start_http

from hindsight.mcp_server import MORE_TOOLS, TOOLS
from hindsight.rest import operations
from hindsight.service import MemoryService

CALLS = int(os.environ.get("ISOLATION_CALLS", "120"))
READS = ("reader", "writer", "owner")
OTHERS = str.maketrans("0123456789abcdef", "1234567890bcdefa")
"""Makes of a word or an id one that nobody has, with letters and digits at the same places."""


class World:
    """Three banks, each with words of its own, and three principals, each with two tokens of a server."""

    def __init__(self, db, server, chance):
        self.db, self.server, self.chance = db, server, chance
        mark = uuid.uuid4().hex[:8]
        self.principals = [f"agent-{mark}-{number}" for number in range(3)]
        self.words = {f"bank{mark}{number}": f"zq{mark}{number}" for number in range(3)}
        self.rights: dict[tuple[str, str], str] = {}
        self.memories: dict[str, list[str]] = {}
        for bank, word in self.words.items():
            db.call("create_bank", bank=bank, description=word)
            self.memories[bank] = [
                str(db.one("store", bank=bank, content=content, slot=f"{word}.slot{place}", session_id=f"{word}-s",
                           tags=[f"{word}t"], entities=[f"{word}e"], metadata=f'{{"k": "{word}"}}')["memory_id"])
                for place, content in enumerate((f"The port of {word} is 22", f"{word} 每天凌晨更新"))
            ]  # fmt: skip
            db.call("log_turn", bank=bank, session_id=f"{word}-s", role="user", content=f"{word} says hello to all")
            db.call("working_set", bank=bank, session_id=f"{word}-s", key="k", value=f'"{word}"')
        self.tokens = []  # token, principal, banks, rights
        for number, principal in enumerate(self.principals):
            narrow = [[*self.words][number]], chance.choice([None, "reader", "adder"])
            for banks, rights in ((None, None), narrow):
                given = {"name": f"t-{uuid.uuid4().hex[:8]}", "principal": principal, "banks": banks, "rights": rights}
                self.tokens.append((db.one("create_token", **given)["create_token"], principal, banks, rights))

    def grant(self):
        bank, principal = self.chance.choice([*self.words]), self.chance.choice(self.principals)
        rights = self.chance.choice([None, "reader", "adder", "writer", "owner"])
        if rights is None:
            self.db.call("revoke_access", bank=bank, principal=principal)
            self.rights.pop((bank, principal), None)
        else:
            self.db.call("grant_access", bank=bank, principal=principal, rights=rights)
            self.rights[bank, principal] = rights

    def may_read(self, bank, principal, banks, rights):
        return self.rights.get((bank, principal)) in READS and bank in (banks or [bank]) and rights != "adder"

    def arguments(self, bank, own=None):
        """Of every name that a call may take. What is written has the own words of the bank that is written to."""
        own, asked = own or self.words[bank], self.chance.choice([*self.words.values()])
        one, another = (self.chance.choice(self.memories[self.chance.choice([*self.words])]) for _ in range(2))
        return {
            "query": self.chance.choice([asked, "port", "更新"]), "message": f"the {asked} again?", "memory_id": one, "reason": "asked to",
            "content": f"The port of {own} is 2222", "tags": [f"{own}t"], "session_id": f"{own}-s", "entities": [f"{own}e"], "key": "k",
            "from_id": one, "to_id": another, "role": "user", "turns": [{"role": "user", "content": f"{own} is up"}], "since": "2020-01-01",
            "verdict": "right", "supersedes": another, "derived_from": [another], "dry_run": True, "value": own,
        } | {"bank": bank}  # fmt: skip

    async def told(self, call, token, sent):
        """All that a tool or a route tells."""
        headers = {"Authorization": f"Bearer {token}"}
        if isinstance(call, str):
            async with Client(StreamableHttpTransport(f"{self.server.url}/mcp", headers=headers)) as client:
                known = {tool.name: tool.input_schema["properties"] for tool in await client.list_tools()}[call]
                given = {name: value for name, value in sent.items() if name in known}
                result = await client.call_tool(call, given, raise_on_error=False)
            return f"{result.is_error} {[part.text for part in result.content]} {result.structured_content}"
        path = call.path.replace("{memory_id}", sent["memory_id"]).replace("{session_id:path}", sent["session_id"])
        named = re.findall(r"[{](\w+)", call.path)
        known = inspect.signature(call.call).parameters.keys() - set(named)
        given = {name: value for name, value in sent.items() if name in known}
        if call.has_body:
            answer = self.server.ask(call.method, path, given, **headers)
        else:
            answer = self.server.ask(call.method, f"{path}?{urlencode(given)}", **headers)
        assert answer.status < 500, answer.text
        return f"{answer.status} {answer.text} {answer.headers.get('hindsight-warnings')}"


@pytest.fixture(scope="module")
def tokened(directory, shared_url, login):
    usual = f"usual-{uuid.uuid4().hex[:8]}"
    started = start_http(directory, database_url=login(shared_url, "hindsight_service"), bank=usual, tools="full")
    yield started
    assert started.end() == 0


@pytest.fixture
def calls(settings):
    return [*operations(MemoryService(settings)), *(plan.names[0] for plan in TOOLS + MORE_TOOLS)]


async def test_nobody_is_shown_what_it_may_not_read(db, tokened, calls):
    chance = random.Random(7)
    world = World(db, tokened, chance)
    shown = 0
    for _ in range(CALLS):
        if chance.random() < 0.3:
            world.grant()
        token, principal, banks, rights = chance.choice(world.tokens)
        call, sent = chance.choice(calls), world.arguments(chance.choice([*world.words]))
        if chance.random() < 0.3:
            sent = {**sent, "banks": chance.sample([*world.words], 2)}
            del sent["bank"]
        told = await world.told(call, token, sent)
        for bank, word in world.words.items():
            seen = [clue for clue in (word, bank, *world.memories[bank]) if clue in told and clue not in str(sent)]
            if world.may_read(bank, principal, banks, rights):
                shown += bool(seen)
            else:
                assert not seen, f"{principal} is shown {seen} by {call} with {sent}: {told[:1000]}"
    assert shown > CALLS / 50, "whoever may read is shown something"


def plain(told, *names):
    """What is told, without ids, times, and the words and names that were sent."""
    for name in names:
        told = told.replace(name, "…")
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\d[T ][0-9:.]+(Z|\+00:00)?|zq[0-9a-f]{9}", "…", told)


async def test_a_guess_is_answered_alike_whether_somebody_has_it_or_not(db, tokened, calls):
    chance = random.Random(8)
    world = World(db, tokened, chance)
    token, principal, *_ = world.tokens[0]
    for _ in range(CALLS // 4):
        call, word = chance.choice(calls), chance.choice([*world.words.values()])
        real = world.arguments("", own=word)
        answers = []
        for is_guess in (False, True):
            mine = f"mine{uuid.uuid4().hex[:8]}"
            db.call("create_bank", bank=mine)
            db.call("grant_access", bank=mine, principal=principal, rights="writer")
            sent = {**(guessed(real) if is_guess else real), "bank": mine}
            answers.append(plain(await world.told(call, token, sent), mine))
        assert answers[0] == answers[1], f"{call} {real}"


def guessed(value):
    if isinstance(value, list):
        return [guessed(one) for one in value]
    if isinstance(value, dict):
        return {name: guessed(one) for name, one in value.items()}
    marks = r"zq[0-9a-f]{9}|[0-9a-f]{8}-[0-9a-f-]{27}"
    return re.sub(marks, lambda found: found[0].translate(OTHERS), value) if isinstance(value, str) else value


async def test_every_call_answers_for_a_hidden_bank_as_for_one_that_there_is_not(db, tokened, calls):
    world = World(db, tokened, random.Random(9))
    hidden, absent = next(iter(world.words)), f"none{uuid.uuid4().hex[:9]}"
    sent = world.arguments(hidden)
    for call in calls:
        for key in ("bank", "banks"):
            of_each = []
            for name in (hidden, absent):
                given = {**sent, key: [name] if key == "banks" else name}
                if key == "banks":
                    del given["bank"]
                of_each.append(plain(await world.told(call, world.tokens[2][0], given), name))
            assert of_each[0] == of_each[1], call
