"""The command line, run in this process or in one of its own that can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hindsight import cli


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    """Runs commands on a database, in a bank, without an embedding model."""

    def __init__(self, url: str, bank: str, directory: Path, capsys: Any) -> None:
        self.url = url
        self.bank = bank
        self.directory = directory
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Ran:
        self._capsys.readouterr()
        code = cli.run([str(one) for one in arguments])
        return Ran(code, *self._capsys.readouterr())

    def killed_when(self, is_time: Callable[[], bool], *arguments: str | Path) -> bool:
        """Runs a command in a process of its own and kills it when it is time; false: it had ended before."""
        with self._started(*arguments) as process:
            while process.poll() is None and not is_time():
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            return process.wait() == -signal.SIGKILL

    def killed_after(self, seconds: float, *arguments: str | Path) -> bool:
        """Runs a command in a process of its own and kills it after so long; false: it had ended before."""
        end = time.monotonic() + seconds
        return self.killed_when(lambda: time.monotonic() > end, *arguments)

    def _started(self, *arguments: str | Path) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", "hindsight.cli", *map(str, arguments)]
        return subprocess.Popen(line, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
