"""The worker: what waits is done, by whichever worker comes, and nothing stops it."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hindsight import AsyncHindsight, Settings
from hindsight.worker import Worker, working
from tests.conftest import Database
from tests.endpoint import Reply, ScriptedEndpoint

WORDS_ONLY = Settings(embedding_provider="none", worker=True, worker_poll=0.05)


@pytest.fixture
async def client(fresh_url: str) -> AsyncIterator[AsyncHindsight]:
    async with await AsyncHindsight.connect(fresh_url, settings=WORDS_ONLY) as memory:
        await memory.create_bank("alice")
        yield memory


async def until(true: Any, seconds: float = 20) -> None:
    """Waits until an async condition holds."""
    async with asyncio.timeout(seconds):
        while not await true():
            await asyncio.sleep(0.05)


async def test_what_was_said_explicitly_is_remembered_by_itself(client: AsyncHindsight) -> None:
    async with working(client, WORDS_ONLY):
        await client.log_turn("alice", "s1", "user", "Remember that the SSH port of web-1 is 2222.")
        await client.log_turn("alice", "s2", "user", "记住：测试环境的SSH端口是49222")

        async def remembered() -> bool:
            return len(await client.recall("alice", "SSH")) == 2

        await until(remembered)
    assert await client.queue("alice") == []


async def test_a_session_in_hand_is_finished_before_the_worker_ends(client: AsyncHindsight) -> None:
    for number in range(20):
        await client.log_turn("alice", f"s{number}", "user", f"Remember that host web-{number} is in rack {number}.")
    worker = Worker(client, WORDS_ONLY)
    task = asyncio.create_task(worker.run())
    await asyncio.sleep(0.1)
    worker.end()
    await asyncio.wait_for(task, 5)
    assert all(session.state == "due" for session in await client.queue("alice"))  # claimed by nobody


async def test_memories_without_an_embedding_get_one(fresh_url: str) -> None:
    with ScriptedEndpoint() as endpoint:
        settings = Settings(
            embedding_provider="openai", embedding_base_url=endpoint.url, embedding_model="m", embedding_retries=0
        )
        async with await AsyncHindsight.connect(fresh_url, settings=settings) as client:
            await client.create_bank("alice")
            database = Database(fresh_url)
            database.call("store", bank="alice", content="Stored by SQL alone.")
            database.close()
            await client.log_turn("alice", "s1", "user", "Remember that the SSH port is 2222.")
            await Worker(client, settings).drain()
            (bank,) = await client.status()
            assert (bank.live, bank.unembedded) == (2, 0)


async def test_an_endpoint_that_fails_leaves_memories_without_an_embedding_and_stops_nothing(fresh_url: str) -> None:
    with ScriptedEndpoint() as endpoint:
        settings = Settings(
            embedding_provider="openai", embedding_base_url=endpoint.url, embedding_model="m", embedding_dimensions=8, embedding_retries=0
        )  # fmt: skip
        endpoint.replies.append(Reply.error(500))
        async with await AsyncHindsight.connect(fresh_url, settings=settings) as client:
            await client.create_bank("alice")
            await client.log_turn("alice", "s1", "user", "Remember that the SSH port is 2222.")
            assert await Worker(client, settings)._distil_one()
            (bank,) = await client.status()
            assert (bank.live, bank.unembedded) == (1, 1)
            await Worker(client, settings).drain()
            assert (await client.status())[0].unembedded == 0


async def test_banks_are_maintained_and_audited_at_their_intervals(client: AsyncHindsight) -> None:
    await client.create_bank("bob")
    await client.store("alice", "Passing.", ttl="1 millisecond", importance=0.9)
    settings = Settings(
        embedding_provider="none", worker=True, worker_poll=0.05, worker_audit=0.05, worker_maintain=3600
    )
    async with working(client, settings):

        async def kept() -> bool:
            return all(bank.maintained_at and bank.audited_at for bank in await client.banks())

        await until(kept)

        async def put_away() -> bool:
            return [bank.archived for bank in await client.status()] == [1, 0]

        await until(put_away)
    assert await client.claim_upkeep("maintain", 3600) is None
    assert (await client.banks())[0].findings is not None


async def test_a_login_that_may_only_read_does_no_work_and_says_so(
    client: AsyncHindsight, fresh_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(fresh_url)
    database.rows("DO $$ BEGIN CREATE ROLE reading_worker LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    database.rows("GRANT hindsight_reader TO reading_worker")
    database.close()
    url = fresh_url.replace("postgres@", "reading_worker@")
    async with await AsyncHindsight.connect(url, settings=WORDS_ONLY) as reader:
        with caplog.at_level("INFO", "hindsight.worker"):
            worker = Worker(reader, WORDS_ONLY)
            task = asyncio.create_task(worker.run())

            async def said() -> bool:
                return "this login does not distil" in caplog.text

            await until(said)
            worker.end()
            await asyncio.wait_for(task, 5)
    assert caplog.text.count("this login does not distil") == WORDS_ONLY.worker_sessions  # once, not at each look


async def test_one_connection_in_the_pool_is_enough(fresh_url: str) -> None:
    settings = Settings(embedding_provider="none", worker=True, worker_poll=3600, pool_size=1)
    async with await AsyncHindsight.connect(fresh_url, settings=settings) as client:
        await client.create_bank("alice")
        async with working(client, settings):
            await asyncio.sleep(0.3)  # it has looked, and waits for word of new work
            await client.log_turn("alice", "s1", "user", "记住：测试环境的SSH端口是49222")

            async def remembered() -> bool:
                return len(await client.recall("alice", "SSH端口")) == 1

            await until(remembered, 5)


async def test_it_is_told_of_work_again_once_the_database_is_back(client: AsyncHindsight, fresh_url: str) -> None:
    listening = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen %%hindsight_work%%'"
    database = Database(fresh_url)

    async def listens() -> bool:
        return len(database.rows(listening)) == 1

    async with working(client, WORDS_ONLY):
        await until(listens)
        (first,) = database.rows(listening)
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        database.rows(others)

        async def listens_anew() -> bool:
            return [row for row in database.rows(listening) if row != first] != []

        await until(listens_anew)
        database.call(
            "log_turn", bank="alice", session_id="s1", role="user", content="Remember that the SSH port is 2222."
        )

        async def distilled() -> bool:
            return database.contents("alice", "SSH port") != []

        await until(distilled)
    database.close()


async def test_a_text_that_the_model_refuses_is_not_sent_at_every_look_and_another_bank_is_embedded(
    fresh_url: str,
) -> None:
    def refusing(request: Any) -> Reply:
        endpoint.replies.append(refusing)
        if any("unspeakable" in text for text in request.body["input"]):
            return Reply.error(400)
        return Reply.vectors([[1.0, 0, 0, 0, 0, 0, 0, 0] for _ in request.body["input"]])

    with ScriptedEndpoint() as endpoint:
        endpoint.replies.append(refusing)
        settings = Settings(
            embedding_provider="openai", embedding_base_url=endpoint.url, embedding_model="m", embedding_dimensions=8,
            embedding_retries=0, worker=True, worker_poll=0.05,
        )  # fmt: skip
        async with await AsyncHindsight.connect(fresh_url, settings=settings) as client:
            database = Database(fresh_url)
            for bank, content in (("alice", "An unspeakable port is 2222."), ("bob", "The SSH port is 2222.")):
                await client.create_bank(bank)
                database.call("store", bank=bank, content=content)
            database.close()
            async with working(client, settings):

                async def embedded() -> bool:
                    return [bank.unembedded for bank in await client.status()] == [1, 0]

                await until(embedded)
                await asyncio.sleep(0.5)
            assert sum("unspeakable" in str(request.body["input"]) for request in endpoint.requests) == 1


def test_the_command_does_what_is_due_and_ends(fresh_url: str) -> None:
    database = Database(fresh_url)
    database.call("create_bank", bank="alice")
    database.call("log_turn", bank="alice", session_id="s1", role="user", content="记住：SSH端口是49222")
    environment = {**os.environ, "DATABASE_URL": fresh_url, "HINDSIGHT_EMBEDDING_PROVIDER": "none"}
    command = [sys.executable, "-m", "hindsight.cli", "worker", "--once"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    assert "1 pieces of work were due" in run.stderr
    assert len(database.contents("alice", "SSH端口")) == 1
    database.close()


def test_the_command_ends_in_order_when_it_is_told_to(fresh_url: str) -> None:
    environment = {**os.environ, "DATABASE_URL": fresh_url, "HINDSIGHT_EMBEDDING_PROVIDER": "none"}
    command = [sys.executable, "-m", "hindsight.cli", "worker"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "working" in process.stderr.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0


def test_a_worker_that_is_killed_at_ten_moments_distils_every_turn_once(fresh_url: str) -> None:
    database = Database(fresh_url)
    database.call("create_bank", bank="alice")
    for number in range(200):
        said = (
            f"Remember that host web-{number} is in rack {number}.",
            "ok",
            f"记住：第{number}号机器的端口是{20000 + number}",
        )
        turns = [{"role": "user", "content": content} for content in said]
        database.call("log_turns", bank="alice", session_id=f"s{number}", turns=json.dumps(turns))
    with ScriptedEndpoint() as endpoint:
        endpoint.delay = 0.05  # so that a session is at work for a while
        environment = {
            **os.environ,
            "DATABASE_URL": fresh_url,
            "HINDSIGHT_EMBEDDING_BASE_URL": endpoint.url,
            "HINDSIGHT_EMBEDDING_MODEL": "m",
            "HINDSIGHT_EMBEDDING_DIMENSIONS": "8",
            "HINDSIGHT_WORKER_LEASE": "1",
            "HINDSIGHT_WORKER_POLL": "0.1",
        }
        command = [sys.executable, "-m", "hindsight.cli", "worker"]
        waiting = "SELECT count(*) FROM hindsight.session WHERE waiting > 0"
        chance = random.Random(7731)
        for _ in range(10):
            left = database.value(waiting)
            with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
                deadline = time.monotonic() + 60
                while database.value(waiting) > left - chance.randint(1, 12) and time.monotonic() < deadline:
                    time.sleep(0.01)
                time.sleep(chance.uniform(0, 0.1))  # in the middle of whatever it does
                process.kill()
        assert 0 < database.value(waiting) < 200  # it was at work, and was killed before the end
        time.sleep(1)
        subprocess.run([*command, "--once"], env=environment, check=True, capture_output=True)
    assert database.value("SELECT count(*) FROM hindsight.turn WHERE distilled_at IS NULL") == 0
    assert database.call("queue", bank="alice") == []
    stored = database.rows("SELECT confirmations, version FROM hindsight.memory WHERE type <> 'summary'")
    assert len(stored) == 400
    assert all((row["confirmations"], row["version"]) == (0, 1) for row in stored)  # stored once, never again
    assert database.value("SELECT count(*) FROM hindsight.memory_turn") == 400
    database.close()
