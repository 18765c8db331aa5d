"""A session in an agent's loop: context before the answer, turns after it, and nothing lost."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator

import pytest

from hindsight import (
    AccessDenied,
    AsyncHindsight,
    InvalidArgument,
    InvalidContent,
    SecretRefused,
    Settings,
    UnknownBank,
)
from hindsight.worker import working
from tests.conftest import Database
from tests.endpoint import Reply, ScriptedEndpoint

WORDS_ONLY = Settings(embedding_provider="none")


@pytest.fixture
async def client(fresh_url: str) -> AsyncIterator[AsyncHindsight]:
    async with await AsyncHindsight.connect(fresh_url, settings=WORDS_ONLY) as memory:
        await memory.create_bank("alice")
        yield memory


async def test_what_is_known_comes_before_the_answer_and_what_was_said_is_kept_after_it(client: AsyncHindsight) -> None:
    await client.store("alice", "The SSH port of web-1 is 2222.", source="user")
    async with client.session("alice", "s1") as session:
        context = await session.before("What was the SSH port of web-1 again?")
        assert "2222" in context.block
        await session.after("What was the SSH port of web-1 again?", "It is 2222.")
        await session.after("还有数据库端口呢？", "数据库端口是5432。")
    desk = await client.working_get("alice", "s1")
    assert [(turn["role"], turn["content"]) for turn in desk.turns] == [
        ("user", "What was the SSH port of web-1 again?"),
        ("assistant", "It is 2222."),
        ("user", "还有数据库端口呢？"),
        ("assistant", "数据库端口是5432。"),
    ]
    (waiting,) = await client.queue("alice")
    assert waiting.state == "due"  # closed


async def test_a_message_that_asks_for_no_memory_gets_none(client: AsyncHindsight) -> None:
    await client.store("alice", "Thanks to Bob the port is 2222.", source="user")
    async with client.session("alice", "s1") as session:
        for message in ("thanks!", "谢谢", "  "):
            assert (await session.before(message)).block == ""


async def test_after_returns_at_once_while_the_endpoint_takes_two_seconds(fresh_url: str) -> None:
    with ScriptedEndpoint() as endpoint:
        slow = [Reply({"choices": []}, delay=2.0) for _ in range(200)]
        endpoint.replies.extend(slow)
        settings = Settings(
            embedding_provider="openai",
            embedding_base_url=endpoint.url,
            embedding_model="m",
            llm_base_url=endpoint.url,
            llm_model="m",
            worker=True,
            worker_poll=0.05,
        )
        async with await AsyncHindsight.connect(fresh_url, settings=settings) as client:
            await client.create_bank("alice")
            took = []
            async with working(client, settings), client.session("alice", "s1") as session:
                for number in range(50):
                    began = time.perf_counter()
                    await session.after(f"Remember that host web-{number} is in rack {number}.", "Noted.")
                    took.append(time.perf_counter() - began)
                    await asyncio.sleep(0.005)
                await session.flush()
                assert (await client.status())[0].turns == 100
            assert statistics.median(took) < 0.010


async def test_turns_are_written_once_the_database_is_back(
    client: AsyncHindsight, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hindsight import DatabaseUnavailable

    write = client.log_turns
    failures = [DatabaseUnavailable("away"), DatabaseUnavailable("away")]

    async def failing(*arguments: object) -> object:
        if failures:
            await write(*arguments)  # written, and the answer is lost: the next attempt must not write it twice
            raise failures.pop()
        return await write(*arguments)

    monkeypatch.setattr(client, "log_turns", failing)
    async with client.session("alice", "s1") as session:
        await session.after("The port is 2222.", "Noted.")
    assert (await client.status())[0].turns == 2


async def test_what_cannot_be_stored_is_refused_at_once_and_the_rest_is_kept(client: AsyncHindsight) -> None:
    async with client.session("alice", "s1") as session:
        with pytest.raises(InvalidContent, match="NUL"):
            await session.after("a\0b", "ok")
        with pytest.raises(InvalidContent, match="1000000"):
            session.log("tool", "x" * 1_000_001)
        await session.after("The port is 2222.", "Noted.")
    assert (await client.status())[0].turns == 2


async def test_a_turn_that_the_bank_refuses_costs_no_other_and_is_told_at_the_end(client: AsyncHindsight) -> None:
    await client.set_redaction("alice", "refuse")

    async def talk() -> None:
        async with client.session("alice", "s1") as session:
            await session.after("I like tea.", "Noted.")
            await session.after("密码是 hunter2-Pa55", "好的")
            await asyncio.sleep(0.3)  # it is refused by now
            await session.after("我也喜欢咖啡", "记住了")

    with pytest.raises(SecretRefused, match="password"):
        await talk()
    said = [turn["content"] for turn in (await client.working_get("alice", "s1")).turns]
    assert said == ["I like tea.", "Noted.", "好的", "我也喜欢咖啡", "记住了"]
    assert (await client.queue("alice"))[0].state == "due"  # closed


async def test_an_answer_of_nothing_but_tool_calls_and_a_message_of_a_megabyte_are_taken(
    client: AsyncHindsight,
) -> None:
    await client.store("alice", "The database is PostgreSQL 18.")
    async with client.session("alice", "s1") as session:
        pasted = "Which database did we choose last time? " + "ERROR: out of memory\n" * 50_000
        assert "PostgreSQL 18" in (await session.before(pasted)).block
        await session.after("Look it up.", None, tool_calls=[{"name": "look_up"}])
    (_, answer) = (await client.working_get("alice", "s1")).turns
    assert answer["tool_calls"] == [{"name": "look_up"}]


async def test_a_session_that_is_not_entered_takes_nothing(client: AsyncHindsight) -> None:
    with pytest.raises(InvalidArgument, match="async with"):
        await client.session("alice", "s1").after("The port is 2222.", "Noted.")


async def test_a_bank_that_is_not_there_is_told_at_the_end(client: AsyncHindsight) -> None:
    with pytest.raises(UnknownBank):
        async with client.session("nobody", "s1") as session:
            await session.after("The port is 2222.", "Noted.")


async def test_who_may_not_write_is_told(client: AsyncHindsight, fresh_url: str) -> None:
    database = Database(fresh_url)
    database.call("grant_access", bank="alice", principal="agent-7", rights="reader")
    database.close()
    with pytest.raises(AccessDenied):
        async with client.acting_for("agent-7").session("alice", "s1") as session:
            await session.after("The port is 2222.", "Noted.")


async def test_a_session_in_which_nothing_was_said_leaves_nothing(client: AsyncHindsight) -> None:
    async with client.session("alice", "s1"):
        pass
    assert (await client.status())[0].sessions == 0


async def test_many_sessions_at_once_keep_their_turns_apart(client: AsyncHindsight) -> None:
    async def talk(number: int) -> None:
        async with client.session("alice", f"s{number}") as session:
            for turn in range(5):
                await session.after(f"question {turn} of {number}", f"answer {turn} of {number}")

    await asyncio.gather(*(talk(number) for number in range(20)))
    for number in range(20):
        desk = await client.working_get("alice", f"s{number}")
        assert [turn["content"] for turn in desk.turns] == [
            f"{kind} {turn} of {number}" for turn in range(5) for kind in ("question", "answer")
        ]
