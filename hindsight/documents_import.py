"""x"""
from __future__ import annotations
from collections.abc import Sequence
from pathlib import Path
from hindsight.command import Common
def import_documents(paths: Sequence[Path], root: Path, common: Common) -> int:
    raise NotImplementedError
