"""The command line, run in this process or in one of its own that can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
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

    def killed_after(self, seconds: float, *arguments: str | Path) -> bool:
        """Runs a command in a process of its own and kills it after so long; false: it had ended before."""
        line = [sys.executable, "-m", "hindsight.cli", *map(str, arguments)]
        with subprocess.Popen(line, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(seconds)
            if process.poll() is not None:
                return False
            process.send_signal(signal.SIGKILL)
            return process.wait() != 0
