"""Old months of turns go into files: gzipped JSONL, one a bank and month, checked before the database drops them.

It may be killed at any moment, and run again: a file is written beside its place, read back, and then named; the
database drops a month in one transaction, and only if its turns are those of the files.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import IO

from hindsight.errors import Conflict, InvalidArgument
from hindsight.sync_client import Hindsight

_PAGE = 2000  # turns that are fetched at once
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A file with a bank's turns of a month. digest: SHA-256 of the file; checksum: of its lines, in any order."""

    bank: str
    location: str
    digest: str
    turns: int
    checksum: int

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "checksum": str(self.checksum)}


def archive_file(client: Hindsight, bank: str, month: date, directory: Path) -> ArchiveFile:
    """Writes a bank's turns of a month into the directory, or finds the file that was written before.

    Raises InvalidArgument where it can't be written, Conflict where another process is writing it.
    """
    path = directory / f"turns-{month:%Y-%m}-{_file_name(bank)}.jsonl.gz"
    part = path.with_name(f".{path.name}.part")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _locked(part) as stream:
            if not path.exists():
                _write(client, bank, month, stream)
                _read_back(part, bank)
                _name(part, path)
            part.unlink(missing_ok=True)
            _sync(directory)
        return _read_back(path, bank)
    except OSError as error:
        raise InvalidArgument(f"{path} can't be written: {error.strerror or error}") from None


def _file_name(bank: str) -> str:
    """A bank's name as a part of a file's name: with a digest where it is not the same."""
    name = re.sub(r"[^\w.-]", "_", bank)[:40]
    return name if name == bank else f"{name}-{hashlib.sha256(bank.encode()).hexdigest()[:8]}"


@contextlib.contextmanager
def _locked(part: Path) -> Iterator[IO[bytes]]:
    """The file that is being written, locked and empty: what a killed process has left there is begun anew."""
    import fcntl  # only where an archive is written: not every system has it

    with part.open("ab") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"another process is writing {part}", hint="Let it finish") from None
        stream.truncate(0)
        yield stream


def _write(client: Hindsight, bank: str, month: date, stream: IO[bytes]) -> None:
    session_id, sequence = "", 0
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
        while page := client.month_lines(bank, month, session_id, sequence, _PAGE):
            packed.writelines(f"{one.line}\n".encode() for one in page)
            session_id, sequence = page[-1].session_id, page[-1].sequence
    stream.flush()
    os.fsync(stream.fileno())


def _read_back(path: Path, bank: str) -> ArchiveFile:
    """What a file holds, read from its beginning to its end. Raises InvalidArgument where it is damaged."""
    turns = checksum = 0
    with path.open("rb") as raw:
        digest = hashlib.file_digest(raw, "sha256").hexdigest()
        raw.seek(0)
        try:
            with gzip.GzipFile(fileobj=raw) as packed:
                for line in packed:
                    turns += 1
                    checksum += int(hashlib.sha256(line.rstrip(b"\n")).hexdigest()[:15], 16)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidArgument(f"{path} is damaged: {error}", hint="Move it away, and run the same again") from None
    return ArchiveFile(bank, str(path.absolute()), digest, turns, checksum)


def _name(part: Path, path: Path) -> None:
    """Gives the file its name, unless another has it."""
    try:
        os.link(part, path)
    except FileExistsError:
        return  # it is read and compared like any other
    except OSError:  # a file system without hard links
        if path.exists():
            raise
        os.rename(part, path)
        part.touch()


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
