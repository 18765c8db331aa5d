"""Random grants and random calls of three principals: nobody is shown a word of a bank that it may not read.

Longer: ISOLATION_STEPS=5000 ISOLATION_SEEDS=20 pytest tests/security/test_isolation_property.py
"""

import os
import random
import re
import uuid
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

STEPS = int(os.environ.get("ISOLATION_STEPS", "250"))
SEEDS = int(os.environ.get("ISOLATION_SEEDS", "3"))
READS = {"reader", "writer", "owner"}
FUNCTIONS = """
    SELECT p.proname AS name, coalesce(p.proargnames[1:p.pronargs], '{}') AS names, p.pronargs - p.pronargdefaults AS required,
           ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a(t, place) ORDER BY place) AS types
    FROM pg_proc AS p
    WHERE p.pronamespace = 'hindsight'::regnamespace AND p.prokind = 'f' AND p.proname !~ '^_'
      AND p.proname <> ALL ('{set_index,set_thresholds,register_model,archive_month,erase_bank,create_bank,begin_reembedding}')
    ORDER BY 1
"""


class World:
    """Four banks, each with words of its own in everything that it holds, and three principals of one service."""

    def __init__(self, db: Database, service: Database, chance: random.Random) -> None:
        self.db, self.service, self.chance = db, service, chance
        mark = uuid.uuid4().hex[:8]
        self.principals = [f"agent-{mark}-{number}" for number in range(3)]
        self.words = {f"bank{mark}{number}": f"zq{mark}{number}" for number in range(4)}
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
        self.functions = db.rows(FUNCTIONS)
        self.relations = [
            row["relname"]
            for row in db.rows(
                "SELECT relname FROM pg_class WHERE relnamespace = 'hindsight'::regnamespace AND relkind IN ('r', 'p', 'v')"
            )
            if row["relname"] != "access_token"
        ]

    def grant(self) -> None:
        bank, principal = self.chance.choice([*self.words]), self.chance.choice(self.principals)
        rights = self.chance.choice([None, "reader", "adder", "writer", "owner"])
        if rights is None:
            self.db.call("revoke_access", bank=bank, principal=principal)
            self.rights.pop((bank, principal), None)
        else:
            types = ["hypothesis"] if rights in ("adder", "writer") and self.chance.random() < 0.3 else None
            self.db.call("grant_access", bank=bank, principal=principal, rights=rights, types=types)
            self.rights[bank, principal] = rights

    def value(self, name: str, kind: str, bank: str) -> Any:
        word = self.chance.choice([*self.words.values()])
        memory = self.chance.choice(self.memories[self.chance.choice([*self.words])])
        values = {
            "bank": bank, "type": self.chance.choice(["fact", "hypothesis"]), "role": "user", "rights": "reader",
            "principal": self.principals[0], "slot": f"{word}.slot0", "session_id": f"{word}-s", "turns": '[{"role": "user", "content": "x y"}]',
            "content": self.chance.choice([f"The port of {word} is 22", "the sky was green", f"{word} 每天凌晨更新"]),
        }  # fmt: skip
        kinds = {
            "text": word, "uuid": memory, "uuid[]": f"{{{memory}}}", "text[]": f"{{{word}t}}", "jsonb": "{}", "integer": "10",
            "bigint": "10", "boolean": "true", "double precision": "0.5", "interval": "1 day", "vector": "[1,0,0]", "vector[]": "{}",
            "timestamp with time zone": "2020-01-01", "integer[]": "{1}", "date": "2020-01-01", "bytea": "\\x00", "tsvector": "x",
            "tsquery": "x",
        }  # fmt: skip
        return values.get(name, kinds[kind])

    def statement(self, bank: str) -> tuple[str, dict[str, Any]]:
        if self.chance.random() < 0.2:
            return f"SELECT to_jsonb(t)::text AS row FROM hindsight.{self.chance.choice(self.relations)} AS t", {}
        function = self.chance.choice(self.functions)
        typed = dict(zip(function["names"], function["types"], strict=True))
        given = {
            name: self.value(name, kind, bank)
            for place, (name, kind) in enumerate(typed.items())
            if place < function["required"] or name == "bank" or self.chance.random() < 0.15
        }
        terms = ", ".join(f"{name} => %({name})s::{typed[name]}" for name in given)
        return f"SELECT * FROM hindsight.{function['name']}({terms})", given

    def told(self, principal: str, scope: str, statement: str, given: dict[str, Any]) -> str:
        """All that the principal is told. What it does stays undone, so that one bank's words stay in it."""
        with self.service.connection.transaction(force_rollback=True):
            self.service.rows(
                "SELECT set_config('hindsight.principal', %s, true), set_config('hindsight.scope', %s, true)",
                (principal, scope),
            )
            try:
                with self.service.connection.transaction():
                    return str(self.service.rows(statement, given))
            except psycopg.Error as error:
                said = error.diag
                return (
                    f"{said.sqlstate} {said.message_primary} {said.message_detail} {said.message_hint} {said.context}"
                )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nobody_is_shown_what_it_may_not_read(
    db: Database, shared_url: str, login: Callable[..., str], seed: int
) -> None:
    chance = random.Random(seed)
    service = Database(login(shared_url, "hindsight_service"))
    world = World(db, service, chance)
    shown = 0
    for _ in range(STEPS):
        if chance.random() < 0.15:
            world.grant()
        principal, bank = chance.choice(world.principals), chance.choice([*world.words])
        scoped = chance.choice([None, None, bank])
        limit = chance.choice([None, None, "reader", "adder"]) if scoped else None
        scope = "" if scoped is None else f'{{"banks": ["{scoped}"]' + (f', "rights": "{limit}"' if limit else "") + "}"
        statement, given = world.statement(bank)
        told = world.told(principal, scope, statement, given)
        sent = " ".join(map(str, given.values()))
        for other, word in world.words.items():
            may_read = world.rights.get((other, principal)) in READS and scoped in (None, other) and limit != "adder"
            clues = [word, other, *world.memories[other]]
            seen = [clue for clue in clues if re.search(re.escape(clue), told) and clue not in sent]
            if may_read:
                shown += bool(seen)
            else:
                assert not seen, f"{principal} is shown {seen}: {statement} {given} within {scope!r}: {told[:1000]}"
    assert shown > STEPS / 50, "whoever may read is shown something"
    service.close()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_guess_is_answered_alike_whether_somebody_has_it_or_not(
    db: Database, shared_url: str, login: Callable[..., str], seed: int
) -> None:
    """The same call in a bank of others, with what it holds and with what it does not: one answer, count and score."""
    chance = random.Random(1000 + seed)
    service = Database(login(shared_url, "hindsight_service"))
    world = World(db, service, chance)
    mine = f"mine{uuid.uuid4().hex[:8]}"
    db.call("create_bank", bank=mine)
    db.call("grant_access", bank=mine, principal=world.principals[0], rights="writer")
    word, absent = next(iter(world.words.values())), f"zq{uuid.uuid4().hex[:9]}"
    for _ in range(STEPS // 2):
        statement, given = world.statement(mine)
        if "bank" not in given:  # what is computed of the text alone, and tables, which ask nothing
            continue
        real = {name: re.sub("zq[0-9a-f]{9}", word, value) for name, value in given.items()}
        guess = {name: value.replace(word, absent) for name, value in real.items()}
        for ids in world.memories.values():
            for one in ids:
                guess = {
                    name: value.replace(one, str(uuid.UUID(int=int(uuid.UUID(one)) ^ 1)))
                    for name, value in guess.items()
                }
        plain = [
            re.sub(
                r"[0-9a-f]{8}-[0-9a-f-]{27}|datetime\([^)]*\)|zq[0-9a-f]{9}|[0-9a-f]{64}",
                "…",
                world.told(world.principals[0], "", statement, sent),
            )
            for sent in (real, guess)
        ]
        assert plain[0] == plain[1], f"{statement} {real}"
    service.close()
