"""Makes the modules of the sync client from those of the async one: `make generate`. A test holds them together."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "hindsight"
MODULES = ["caller", "embeddings", "access", "operations", "conversations", "client"]
REPLACEMENTS = [
    (r"(?s)    # Async only\.\n.*?    # End of async only\.\n", ""),
    (r"from hindsight\.agent_session import AgentSession\n", ""),
    (r"\bhindsight\.(caller|embeddings|access|operations|conversations|client)\b", r"hindsight.sync_\1"),
    (r"from anyio import sleep\n", "from time import sleep\n"),
    (r"from anyio\.to_thread import run_sync\n", ""),
    (r"await run_sync\((lambda: )?([\w.]+)\)", r"\2"),
    (r"await run_sync\(([\w.]+), ", r"\1("),
    (r"\basync (def|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\basync for\b", "for"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"connection\.stream\(", "connection.execution_options(stream_results=True).execute("),
    (r"\bAwaitable\[(.*)\]\]$", r"\1]"),
    (r"import Awaitable, ", "import "),
    (r"\bAsync(Caller|Embeddings|Access|Operations|Conversations|Hindsight)\b", r"\1"),
    (r"\bAsyncEngine\b", "Engine"),
    (r"\basync_engine\b", "sync_engine"),
    (r"from sqlalchemy\.ext\.asyncio import Engine", "from sqlalchemy import Engine"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (
        r"; an async context manager; safe for concurrent tasks\.",
        "; a context manager; safe for several threads.",
    ),
]


def generated(module: str) -> str:
    source = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
    heading = f'"""Made from {module}.py by `make generate`: change that one."""'
    source = re.sub(r"\A\"\"\".*?\"\"\"", heading, source, flags=re.DOTALL)
    for pattern, replacement in REPLACEMENTS:
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--fix-only", "--select", "I", "-q"], ["format", "-q"]):
        run = subprocess.run(
            [*ruff, *command, "--stdin-filename", str(PACKAGE / f"sync_{module}.py"), "-"],
            input=source, capture_output=True, check=True, text=True, encoding="utf-8",
        )  # fmt: skip
        source = run.stdout
    return source


if __name__ == "__main__":
    for module in MODULES:
        (PACKAGE / f"sync_{module}.py").write_text(generated(module), encoding="utf-8")
