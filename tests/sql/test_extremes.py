"""Whatever is passed to a public function, it works or is refused with an error of class HM that says what is right."""

import itertools
import random
import uuid
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

LONG = random.Random(1).randbytes(50_000).hex()  # too long for an index, also compressed
EXTREMES: dict[str, list[str | None]] = {
    "integer": [None, "-2147483648", "-1", "0", "2147483647"],
    "double precision": [None, "NaN", "Infinity", "-Infinity", "1e308", "-1e308", "1e-308", "-1", "-0.0"],
    "bigint": [None, "-9223372036854775808", "-1", "0", "9223372036854775807"],
    "boolean": [None, "false", "true"],
    "date": [None, "infinity", "-infinity", "4713-01-02 BC", "5874897-12-30"],
    "integer[]": [None, "{}", "{NULL}", "{-2147483648,2147483647}", "{{1,2},{3,4}}", "[0:1]={1,2}"],
    "text": [None, "", " ", "\u200b", "x", "'", "\\", "%s", "no such", "无", LONG, "7 days", "english", "Infinity"],
    "uuid": [None, "00000000-0000-0000-0000-000000000000"],
    "timestamp with time zone": [None, "infinity", "-infinity", "4713-01-02 BC", "294276-12-30", "0001-01-01", "now"],
    "interval": [None, "0", "-1 day", "infinity", "-infinity", "170000000 years", "-170000000 years", "2000000000 days"],
    "jsonb": [None, "null", "[]", "1", '"x"', "{}", '{"": null}', '{"a": {"$gt": null}}', '{"a": {"$in": 1}}', '{"a": {"$no": 1}}',
              '{"a": 1e400}', '{"a": [["b"]]}', "[" * 1000 + "]" * 1000, '{"a":' * 1000 + "1" + "}" * 1000, f'{{"{LONG}": 1}}'],
    "text[]": [None, "{}", "{NULL}", '{""}', "{live,NULL}", "{{live,pending},{a,b}}", "[0:1]={live,pending}", f"{{{LONG}}}"],
    "uuid[]": [None, "{}", "{NULL}", "{{%(memory)s,%(memory)s},{%(memory)s,%(memory)s}}", "{%(memory)s,NULL}", "[0:0]={%(memory)s}",
               "{{%(memory)s}}", "{00000000-0000-0000-0000-000000000000}"],
    "vector": [None, "[1]", "[0,0,0]", "[3e38,3e38,3e38]", "[1e-45,0,0]"],
    "vector[]": [None, "{}", "{NULL}", '{"[1,0,0]",NULL}', '{{"[1,0,0]"},{"[1,0,0]"}}', '[0:0]={"[1,0,0]"}', '{"[1]"}'],
    "tsvector": [None, "", "x"],
    "tsquery": [None, "", "x"],
    "bytea": [None, ""],
}  # fmt: skip
"""Values of each type that a caller may send."""
USUAL: dict[str, str] = {
    "bank": "%(bank)s", "banks": "{%(bank)s}", "memory_id": "%(memory)s", "from_id": "%(memory)s", "to_id": "%(other)s", "other_id": "%(other)s",
    "content": "Alice Cooper uses MySQL 8.4 on port 8022", "query": "port", "message": "the port?", "type": "fact", "reason": "asked to",
    "name": "Alice Cooper", "digest": "\\x00", "session_id": "s", "role": "user", "principal": "agent-7", "rights": "reader", "finding": "duplicates", "since": "2020-01-01",
    "model": "%(model)s", "dimensions": "3", "embedding": "[1,0,0]", "version": "1", "language": "english", "on_conflict": "history",
    "entities": "{x}", "tags": "{x}", "slot": "port", "context": "c", "whole": "true", "screening": "true",
    "embeddings": '{"[1,0,0]"}', "seconds": "10", "most": "10", "turns": '[{"role": "user", "content": "x", "sequence": 1}]', "key": "k", "purpose": "distil", "task": "audit",
    "month": "2020-01-01", "document": "x", "files": "[]", "error": "x", "memory_ids": "{%(memory)s}", "versions": "{1}", "every": "1 day", "until": "2020-01-01", "derived_from": "{%(memory)s}", "findings": "1", "claim": "%(memory)s", "sequences": "{1}", "memories": "[]", "mode": "rules",
    **dict.fromkeys(("similarity", "confidence", "days", "decay_rate", "weight", "cosine", "floor", "bm25", "semantic", "lexical",
                     "activation"), "0.5"),
}  # fmt: skip
"""What the other arguments are meanwhile, where a function has no default for them."""
BESIDE = [{"embedding": "[1,0,0]", "model": "%(model)s"}, {}]
FUNCTIONS = """
    SELECT p.proname AS name, p.pronargs - p.pronargdefaults AS required, coalesce(p.proargnames[1:p.pronargs], '{}') AS names,
           ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a(t, place) ORDER BY place) AS types
    FROM pg_catalog.pg_proc AS p
    WHERE p.pronamespace = 'hindsight'::regnamespace AND p.prokind = 'f' AND p.proname !~ '^_'
    ORDER BY 1
"""
NOT_ASKED = {"set_index"}
"""They change the index of every bank for the whole server: each has tests of its own."""


class Subject:
    """A bank with two memories and a model."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.bank, self.model = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("arguments", "model"))
        db.call("register_model", model=self.model, dimensions=3)
        db.call("create_bank", bank=self.bank)
        given = {"bank": self.bank, "embedding": "[1,0,0]", "model": self.model}
        self.memory = db.one("store", content="The port is 8021", slot="port", **given)["memory_id"]
        self.other = db.one("store", content="call the dentist", type="todo", tags=["x"], **given)["memory_id"]

    def fault(self, function: str, terms: dict[str, tuple[str | None, str]]) -> str | None:
        """What is wrong with how a function answers: an error of PostgreSQL's, or of ours without a hint. Nothing stays written."""
        names = {name: str(getattr(self, name)) for name in ("bank", "model", "memory", "other")}
        values = {
            name: value % names
            if value is not None and value.startswith(("%(", "{", "[0:")) and "%(" in value
            else value
            for name, (value, _) in terms.items()
        }
        call = ", ".join(f"{name} => %({name})s::{type}" for name, (_, type) in terms.items())
        try:
            with self.db.connection.transaction(force_rollback=True):
                self.db.rows(f"SELECT * FROM hindsight.{function}({call})", values)
        except psycopg.Error as error:
            state, hint = error.sqlstate or "", error.diag.message_hint
            if not (state.startswith("HM") and hint):
                shown = {
                    name: value and value[:60] for name, value in values.items() if terms[name][0] != USUAL.get(name)
                }
                return f"{function}({shown}): {state} {error.diag.message_primary} (hint: {hint})"
        return None


def functions(db: Database) -> list[dict[str, Any]]:
    return [row for row in db.rows(FUNCTIONS) if row["name"] not in NOT_ASKED]


def test_any_value_of_any_argument_is_taken_or_refused_with_an_hm_error_and_a_hint(db: Database) -> None:
    subject = Subject(db)
    faults = []
    for function in functions(db):
        typed = dict(zip(function["names"], function["types"], strict=True))
        required = {
            name: (USUAL[name], typed[name]) for name in function["names"][: function["required"]] if name in USUAL
        }
        for argument, kind in typed.items():
            for extreme, beside in itertools.product(EXTREMES[kind], BESIDE):
                others = {name: (value, typed[name]) for name, value in beside.items() if name in typed}
                if beside and not others:
                    continue
                faults.append(subject.fault(function["name"], {**required, **others, argument: (extreme, kind)}))
    assert "\n".join(sorted({fault for fault in faults if fault})) == ""


def test_any_two_numbers_are_taken_by_the_formula_and_a_score_stays_a_part_of_one(db: Database) -> None:
    subject = Subject(db)
    kind = "double precision"
    faults = []
    for function in functions(db):
        if function["name"] not in ("score", "decay", "semantic", "lexical", "similarity"):
            continue
        usual = {name: (USUAL[name], kind) for name in function["names"]}
        for one, other in itertools.combinations(function["names"], 2):
            for given in itertools.product(EXTREMES[kind], repeat=2):
                pair = {name: (value, kind) for name, value in zip((one, other), given, strict=True)}
                faults.append(subject.fault(function["name"], {**usual, **pair}))
    assert "\n".join(sorted({fault for fault in faults if fault})) == ""
    for value in ("1e308", "Infinity"):
        assert db.value(f"SELECT hindsight.score('{value}', '{value}', '{value}', '{value}', '{value}')") <= 1


def test_upkeep_of_all_banks_inside_a_transaction_is_refused_before_it_does_anything(db: Database, bank: str) -> None:
    db.call("store", bank=bank, content="passing", ttl="1 ms")
    with pytest.raises(psycopg.errors.InvalidTransactionTermination), db.connection.transaction():
        db.rows("CALL hindsight.maintain_all()")
    (row,) = db.rows("SELECT expired FROM hindsight.status() WHERE bank = %s", (bank,))
    assert row["expired"] == 1
    db.rows("CALL hindsight.maintain_all()")


@pytest.mark.parametrize("length", [201, 100_000])
def test_a_principal_whose_name_is_too_long_is_told_so(db: Database, bank: str, length: int) -> None:
    subject, name = Subject(db), LONG[:length]
    acting = "SELECT set_config('hindsight.principal', %s, true)"
    for statement, given in (
        ("SELECT hindsight.create_bank('of-nobody')", ()),
        ("SELECT hindsight.cache_embedding(%s, 'port?', '[1,0,0]')", (subject.model,)),
        ("SELECT set_config('hindsight.principal', '', true), hindsight.grant_access(%s, %s, 'reader')", (bank, name)),
    ):
        with db.connection.transaction(force_rollback=True):
            db.rows(acting, (name,))
            with pytest.raises(psycopg.Error) as caught:
                db.rows(statement, given)
        assert (caught.value.sqlstate, caught.value.diag.message_hint is not None) == ("HM004", True)
        assert f"a principal's name has {length} characters" in (caught.value.diag.message_primary or "")
