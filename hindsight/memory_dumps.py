"""Memories as others dump them: mem0's, and the JSONL of the MCP reference memory server.

A reader returns (id in the dump, the memory as `store` takes it); without an id its content stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hindsight.chat_exports import moment

Made = tuple[str | None, dict[str, Any]]

IMPORTANCE = 0.5
"""Somebody thought it worth keeping once: it is not weighed by rules again."""


def mem0_memory(dumped: Mapping[str, Any]) -> Made:
    """A memory of mem0. Whose it was there (user_id, agent_id, run_id) is kept as data, and gives no rights here."""
    content, metadata = dumped["memory"], dict(dumped.get("metadata") or {})
    if not isinstance(content, str):
        raise ValueError(f"memory is not a text but {content!r:.50}")
    for name in ("user_id", "agent_id", "run_id", "actor_id", "categories"):
        if dumped.get(name):
            metadata[name] = dumped[name]
    given: dict[str, Any] = {"content": content, "importance": IMPORTANCE, "metadata": metadata}
    # Its words are those of its last change.
    if said := dumped.get("updated_at") or dumped.get("created_at"):
        given["occurred_at"] = moment(said, "updated_at")
    return (str(dumped["id"]) if dumped.get("id") else None), given


def mcp_memory(line: Mapping[str, Any]) -> Iterator[Made]:
    """The memories of a line: an entity's observations, each with the entity's name; or a relation, as a sentence."""
    if line["type"] == "relation":
        subject, verb, other = (_text(line, name) for name in ("from", "relationType", "to"))
        yield None, _memory(f"{subject} {verb.replace('_', ' ')} {other}", [subject, other])
    elif line["type"] == "entity":
        name, kind = _text(line, "name"), line.get("entityType")
        for observation in line["observations"]:
            if not isinstance(observation, str):
                raise ValueError(f"an observation is not a text but {observation!r:.50}")
            is_named = (
                name.casefold() in observation.casefold() or name.replace("_", " ").casefold() in observation.casefold()
            )
            content = observation if is_named else f"{name.replace('_', ' ')}: {observation}"
            yield None, _memory(content, [name], [kind] if isinstance(kind, str) and kind.strip() else [])
    else:
        raise ValueError(f"is neither an entity nor a relation but {line['type']!r:.50}")


def _memory(content: str, entities: list[str], tags: list[str] | None = None) -> dict[str, Any]:
    return {"content": content, "entities": entities, "tags": tags or [], "importance": IMPORTANCE}


def _text(line: Mapping[str, Any], name: str) -> str:
    value = line[name]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} is not a text but {value!r:.50}")
    return value
