"""The commands of the work behind: worker, queue, distilling, reflect."""

from __future__ import annotations

import asyncio
from typing import Annotated

from cyclopts import Parameter

from hindsight import reflecting, tables
from hindsight.client import AsyncHindsight
from hindsight.command import COMMON, Common, note, show
from hindsight.config import Settings, load_settings
from hindsight.reflector import Reflector, reflector_from
from hindsight.results import Insight


def worker(*, once: Annotated[bool, Parameter(help="Do what is due now, and end.")] = False) -> None:
    """Distil sessions, embed, maintain and reflect, for all banks, until it is told to end (SIGTERM).

    Several share the work. `hindsight serve` does it as well, unless HINDSIGHT_WORKER is false.
    """
    from hindsight.server_log import log_to_standard_error
    from hindsight.worker import work

    settings = load_settings()
    log_to_standard_error(settings.log_format)
    done = asyncio.run(work(settings, once=once))
    if once:
        note(f"{done} pieces of work were due, and are done" if done else "nothing was due")


def queue(
    *,
    retry: Annotated[bool, Parameter(help="Make the sessions that failed due at once.")] = False,
    session_id: Annotated[str | None, Parameter(help="With --retry: this one only, failed or not.")] = None,
    most: Annotated[int, Parameter(help="How many to show at most.")] = 100,
    common: Common = COMMON,
) -> None:
    """Show the sessions that wait to be distilled: when they are due, what failed, and why; --retry tries again."""
    client, bank = common.open()
    with client:
        if retry:
            note(f"{client.retry(bank, session_id)} sessions are due now")
        found = client.queue(bank, most=most)
    show(common.as_json, found, *([tables.queue_table(found)] if found else []))
    if not found:
        note(f"nothing waits in the bank {bank!r}")


def distilling(
    *,
    mode: Annotated[str | None, Parameter(help="auto, model, rules, verbatim or off.")] = None,
    after_turns: Annotated[int | None, Parameter(help="Distil a session when so many turns wait.")] = None,
    after_idle: Annotated[str | None, Parameter(help="Or when it has been idle for so long: 10 minutes.")] = None,
    working_turns: Annotated[int | None, Parameter(help="Turns on a session's desk.")] = None,
    common: Common = COMMON,
) -> None:
    """Change how the bank's sessions are distilled."""
    client, bank = common.open()
    with client:
        client.set_distilling(
            bank, mode=mode, after_turns=after_turns, after_idle=after_idle, working_turns=working_turns
        )
        changed = next(known for known in client.banks() if known.bank == bank)
    show(common.as_json, changed, f"{bank}: distilled by {changed.distil_mode}")


def reflect(
    *,
    rules: Annotated[bool, Parameter(help="By rules alone, also where a language model is configured.")] = False,
    common: Common = COMMON,
) -> None:
    """Look for what was said again and again, and keep it as hypotheses that cite their evidence.

    With a language model also for what follows from several memories. The worker does it when a bank is idle.
    """
    settings = load_settings()
    bank = settings.bank if common.bank is None else common.bank
    found, problems = asyncio.run(_reflect(settings, bank, None if rules else reflector_from(settings)))
    lines = [f"{one.outcome}: {tables.visible(one.content or '')} ({len(one.derived_from)} memories)" for one in found]
    show(common.as_json, {"bank": bank, "insights": found, "problems": problems}, *(lines or ["nothing new"]))
    for problem in problems:
        note(problem)


async def _reflect(settings: Settings, bank: str, reflector: Reflector | None) -> tuple[list[Insight], list[str]]:
    async with await AsyncHindsight.connect(settings=settings) as client:
        return await reflecting.reflect(client, bank, reflector, budget=settings.llm_daily_tokens)
