"""`hindsight import --as knowledge`: documents as knowledge, and again in place when they have changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hindsight.errors import InvalidArgument
from hindsight.masked import is_kept_as
from hindsight.passages import Passage, read_document
from hindsight.results import Imported
from hindsight.sync_client import Hindsight

MARKDOWN = (".md", ".markdown", ".mdx")
SUFFIXES = (*MARKDOWN, ".txt")
"""What is taken out of a directory."""
IMPORTANCE = 0.6
"""Somebody wrote it down: it is not put away as unused."""
_BATCH = 64
_REMOVED = "removed from the document"


@dataclass(slots=True)
class _Plan:
    """What has to be done for the memories of a document to be its passages."""

    kept: list[tuple[Imported, Passage]] = field(default_factory=list)
    stored: list[tuple[Passage, Imported | None]] = field(default_factory=list)
    restored: list[tuple[Imported, Passage]] = field(default_factory=list)
    removed: list[Imported] = field(default_factory=list)
    forgotten: int = 0


def find_documents(paths: Sequence[Path], root: Path) -> dict[str, Path]:
    """The documents of files and directories by their names: the path from the root, where they are in it.

    Raises InvalidArgument for a path that is not there.
    """
    found = dict[str, Path]()
    for path in paths:
        if not path.exists():
            raise InvalidArgument(f"{path} can't be read: there is no such file or directory")
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            is_hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
            if file.is_file() and not is_hidden and (file == path or file.suffix.lower() in SUFFIXES):
                found[document_name(file, root)] = file
    return found


def document_name(path: Path, root: Path) -> str:
    whole, begin = path.resolve(), root.resolve()
    return (whole.relative_to(begin) if whole.is_relative_to(begin) else whole).as_posix()


def missing_documents(
    known: Mapping[str, int], paths: Sequence[Path], root: Path, found: Mapping[str, Path]
) -> Iterator[str]:
    """Documents that were imported from these directories and are not there any more."""
    names = [document_name(path, root) for path in paths if path.is_dir()]
    for document in known:
        is_inside = any(
            (name == "." and not document.startswith("/")) or document.startswith(f"{name}/") for name in names
        )
        if is_inside and document not in found and Path(document).suffix.lower() in SUFFIXES:
            yield document


def read_passages(path: Path) -> tuple[list[Passage], dict[str, Any]]:
    """The passages of a file and its front matter. Raises InvalidArgument where it can't be read, or is not UTF-8."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InvalidArgument(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None
    if "\0" in text:
        raise InvalidArgument(f"{path} is no text: it holds a NUL at offset {text.index(chr(0))}")
    return read_document(text, is_markdown=path.suffix.lower() in MARKDOWN)


def import_document(
    client: Hindsight, bank: str, document: str, passages: Sequence[Passage], front: Mapping[str, Any]
) -> Counter[str]:
    """Makes the memories of a document its passages: what is unchanged stays, the rest is superseded or forgotten.

    Returns what became of how many. It may be interrupted, and done again.
    """
    plan = _planned(client.imported(bank, document), passages)
    done = Counter[str]({"unchanged": len(plan.kept), "left out: somebody forgot it": plan.forgotten})
    for start in range(0, len(plan.stored), _BATCH):
        batch = plan.stored[start : start + _BATCH]
        memories = [
            _memory(document, front, one) | ({"supersedes": old.memory_id} if old else {}) for one, old in batch
        ]
        done.update(one.outcome for one in client.store_many(bank, memories))
    for old, _ in plan.restored:
        client.restore(bank, old.memory_id, f"it is in the document {document} again")
        done["restored"] += 1
    for old, one in [*plan.kept, *plan.restored]:
        metadata = old.metadata | _metadata(document, front, one)
        if metadata != old.metadata:
            client.update(
                bank, old.memory_id, metadata=metadata, reason=f"the document {document} has changed around it"
            )
    for old in plan.removed:
        client.forget(bank, old.memory_id, f"{_REMOVED} {document}")
        done["removed"] += 1
    return +done


def _planned(known: Sequence[Imported], passages: Sequence[Passage]) -> _Plan:
    plan = _Plan()
    masked = [one.content for one in known if "[" in one.content]
    fresh = list({_as_kept(passage.content, masked): passage for passage in passages}.items())
    held = {one.content: one for one in known if one.state in ("live", "pending")}
    gone = {one.content: one for one in known if one.state == "deleted" and one.content not in held}
    changed = list[Passage]()
    for content, passage in fresh:
        if old := held.pop(content, None):
            plan.kept.append((old, passage))
        elif old := gone.get(content):
            if (old.forgotten_reason or "").startswith(_REMOVED):
                plan.restored.append((old, passage))
            else:
                plan.forgotten += 1
        else:
            changed.append(passage)
    # An old passage that is left is followed by the new one that says the same under another heading, else by the next
    # under the same heading, else by none: then it is removed.
    by_body = {_body(one): one for one in held.values()}
    by_heading = defaultdict[str, list[Imported]](list)
    for one in sorted(held.values(), key=lambda one: int(one.metadata.get("place", 0))):
        by_heading[str(one.metadata.get("heading", ""))].append(one)
    pairs = {passage.content: old for passage in changed if (old := by_body.pop(passage.body, None))}
    taken = {old.memory_id for old in pairs.values()}
    for passage in changed:
        if passage.content not in pairs:
            left = (old for old in by_heading[passage.heading] if old.memory_id not in taken)
            if old := next(left, None):
                pairs[passage.content] = old
                taken.add(old.memory_id)
        plan.stored.append((passage, pairs.get(passage.content)))
    plan.removed = [one for one in held.values() if one.memory_id not in taken]
    return plan


def _as_kept(content: str, masked: Sequence[str]) -> str:
    """A passage as the bank has it, where that masked something in it."""
    return next((kept for kept in masked if is_kept_as(content, kept)), content)


def _body(known: Imported) -> str:
    return known.content.partition("\n")[2] if known.metadata.get("heading") else known.content


def _metadata(document: str, front: Mapping[str, Any], passage: Passage) -> dict[str, Any]:
    return {**front, "document": document, "place": passage.place, "heading": passage.heading}


def _memory(document: str, front: Mapping[str, Any], passage: Passage) -> dict[str, Any]:
    return {
        "content": passage.content,
        "type": "knowledge",
        "source": "document",
        "importance": IMPORTANCE,
        "context": f"{document} {passage.heading}".strip()[:2000],
        "tags": list(passage.tags),
        "metadata": _metadata(document, front, passage),
    }
