"""Documents as passages that stand alone: split at headings, and where a section is long between its blocks.

A passage begins with the headings that it stands under. Tables, code fences and lists stay whole, up to what a memory
may hold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt

MOST = 400  # tokens of a passage, about: most embedding models look at 512
LEAST = 40  # a last piece of fewer tokens goes with the one before
LIMIT = 9000  # characters of a passage: a memory takes 10,000
_TAG = 60  # characters of a heading that is a tag too: a longer one is a sentence
_PATH = 300  # characters of headings in a passage
_SEPARATOR = " › "

_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_SENTENCE = re.compile(r"[^。！？.!?\n]*(?:[。！？]+[”’」』]?|[.!?]+[\"')\]]*(?=\s|$)|\n|[.!?]|$)")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"([A-Za-z_][\w-]*):[ \t]*(.*)")
_ITEM = re.compile(r"([-*+]|\d{1,9}[.)])[ \t]")
_COMMENT = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)
_MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document. heading: the headings that it stands under; place: from 1, among those under the same."""

    content: str
    body: str
    heading: str
    place: int
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    kind: str
    text: str


def read_document(text: str, *, is_markdown: bool) -> tuple[list[Passage], dict[str, Any]]:
    """The passages of a document, in their order, and what its front matter says."""
    front, text = _front_matter(text.replace("\r\n", "\n")) if is_markdown else ({}, text.replace("\r\n", "\n"))
    labels = front.pop("tags", None) or front.pop("keywords", None) or []
    tags = [one.strip() for one in (labels.split(",") if isinstance(labels, str) else labels) if one.strip()]
    title = front.get("title") if isinstance(front.get("title"), str) else None
    passages, places = list[Passage](), Counter[str]()
    for path, blocks in _sections(text) if is_markdown else [((), _paragraphs(text))]:
        path = path if not title or title in path else (title, *path)
        heading = _SEPARATOR.join(path)
        for body in _packed(blocks):
            places[heading] += 1
            content = f"{heading[-_PATH:]}\n{body}" if heading else body
            labelled = tuple(dict.fromkeys([*tags, *(one for one in path if len(one) <= _TAG)]))[:100]
            passages.append(Passage(content, body, heading, places[heading], labelled))
    return passages, front


def _front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The fields of YAML's plainest form: `key: value`, `key: [a, b]`, a list below its key; what is nested is text."""
    match = _FRONT.match(text)
    if match is None:
        return {}, text
    fields, key = dict[str, Any](), None
    for line in match.group(1).splitlines():
        if field := _FIELD.fullmatch(line.rstrip()):
            key, value = field.group(1), field.group(2).strip()
            is_list = value.startswith("[") and value.endswith("]")
            fields[key] = [_plain(one) for one in value[1:-1].split(",") if one.strip()] if is_list else _plain(value)
        elif key is not None and line.strip() and not line.lstrip().startswith("#"):
            item = line.strip()
            if item.startswith("- "):
                fields[key] = [*(fields[key] if isinstance(fields[key], list) else []), _plain(item[2:])]
            elif isinstance(fields[key], str):
                fields[key] = f"{fields[key]}\n{item}".strip()
    return {name: value for name, value in fields.items() if value}, text[match.end() :]


def _plain(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _sections(text: str) -> Iterator[tuple[tuple[str, ...], list[_Block]]]:
    """The blocks under each heading, with the headings that stand above them."""
    path, blocks = list[tuple[int, str]](), list[_Block]()
    lines = text.splitlines()
    tokens = _MARKDOWN.parse(text)
    for place, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting == -1:
            continue
        if token.type == "heading_open":
            if blocks:
                yield tuple(title for _, title in path), blocks
            level, blocks = int(token.tag[1]), []
            title = "".join(child.content for child in tokens[place + 1].children or []).strip()
            path = [*(one for one in path if one[0] < level), (level, title)] if title else path
        elif token.type != "hr":
            source = "\n".join(lines[token.map[0] : token.map[1]]).strip("\n")
            if not (token.type == "html_block" and _COMMENT.fullmatch(source)):
                blocks.append(_Block(token.type.removesuffix("_open"), source))
    if blocks:
        yield tuple(title for _, title in path), blocks


def _paragraphs(text: str) -> list[_Block]:
    return [_Block("paragraph", one.strip("\n")) for one in re.split(r"\n[ \t]*(?:\n[ \t]*)+", text) if one.strip()]


def tokens(text: str) -> float:
    """About how many tokens a text has: one a Chinese character, one for four others."""
    wide = len(_WIDE.findall(text))
    return wide + (len(text) - wide) / 4


def _packed(blocks: Sequence[_Block]) -> Iterator[str]:
    """Blocks, together as far as they fit. What leads a list, a table or code in stays with it."""
    pieces = [_Block(block.kind, text) for block in blocks for text in _split(block)]
    groups = list[list[_Block]]()
    for piece in pieces:
        if groups and tokens(_joined([*groups[-1], piece])) <= MOST:
            groups[-1].append(piece)
            continue
        leads = (
            groups and len(groups[-1]) > 1 and piece.kind != "paragraph" and groups[-1][-1].text.endswith((":", "："))
        )
        groups.append([groups[-1].pop(), piece] if leads else [piece])
    if len(groups) > 1 and tokens(_joined(groups[-1])) < LEAST and len(_joined(groups[-2])) < LIMIT - 4 * LEAST:
        last = groups.pop()
        groups[-1].extend(last)
    yield from map(_joined, groups)


def _joined(blocks: Sequence[_Block]) -> str:
    return "\n\n".join(block.text for block in blocks)


def _split(block: _Block) -> Iterator[str]:
    """A block, in parts where it is too long: a paragraph by sentences, another only beyond what a memory may hold."""
    if block.kind == "paragraph":
        yield from _filled(_sentences(block.text), MOST * 4, lambda text: tokens(text) <= MOST, "")
    elif len(block.text) <= LIMIT:
        yield block.text
    else:
        lines = block.text.split("\n")
        before, after, parts = list[str](), list[str](), lines
        if block.kind == "table":
            before, parts = lines[:2], lines[2:]
        elif block.kind == "fence":
            before, parts, after = lines[:1], lines[1:-1], lines[-1:]
        elif block.kind in ("bullet_list", "ordered_list"):
            parts = _items(lines)
        frame = sum(len(line) + 1 for line in (*before, *after))
        for text in _filled(parts, max(LIMIT - frame, 100), lambda text: True, "\n"):
            yield "\n".join([*before, text, *after])


def _items(lines: Sequence[str]) -> list[str]:
    """The items of a list with what belongs to each."""
    items = list[str]()
    for line in lines:
        if _ITEM.match(line) or not items:
            items.append(line)
        else:
            items[-1] += f"\n{line}"
    return items


def _sentences(text: str) -> list[str]:
    return [one for one in _SENTENCE.findall(text) if one]


def _filled(parts: Sequence[str], limit: int, fits: Any, joint: str) -> Iterator[str]:
    """Parts, joined as far as they fit; one that is too long alone is cut."""
    held = ""
    for part in (whole[at : at + limit] for whole in parts for at in range(0, max(len(whole), 1), limit)):
        together = f"{held}{joint}{part}" if held else part
        if held and (len(together) > limit or not fits(together)):
            yield held.strip("\n")
            together = part
        held = together
    if held.strip():
        yield held.strip("\n")
