"""Conversations as others export them: ChatGPT's, Claude's, and LoCoMo's. Each becomes turns of one session or more.

A reader yields (session_id, which message, the turn as `log_turns` takes it) and raises ValueError, KeyError or
TypeError where a conversation is not what it should be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from hindsight.dataset import locomo_passages

Made = tuple[str, str, dict[str, Any]]

_UNSAID = ("user_editable_context", "model_editable_context", "thoughts", "reasoning_recap")
"""Contents of ChatGPT's messages that nobody said: custom instructions, and what a model thought."""


def moment(value: Any, name: str) -> str:
    """A time, ISO 8601 or seconds since 1970, as ISO 8601. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{name} is no time: {value!r:.50}")
    try:
        at = datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else datetime.fromisoformat(value)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{name} is no time, ISO 8601 or seconds since 1970: {value!r:.50}") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat()


def chatgpt_turns(conversation: Mapping[str, Any]) -> Iterator[Made]:
    """ChatGPT's: of a tree of messages the branch that was shown last. What was hidden is left out."""
    session_id = f"chatgpt-{conversation.get('conversation_id') or conversation['id']}"
    title = {"title": conversation["title"]} if conversation.get("title") else {}
    for number, node_id in enumerate(_branch(conversation["mapping"], conversation.get("current_node")), 1):
        message = conversation["mapping"][node_id].get("message")
        if not message or _is_hidden(message):
            continue
        content, tool_calls, metadata = _chatgpt_content(message)
        if not content.strip() and not tool_calls:
            if not metadata:
                continue  # a node that only joins others
            content = "[attachment]"
        author = message["author"]
        if author.get("name"):
            metadata["name"] = author["name"]
        given = {
            "role": author["role"],
            "content": content,
            "turn_id": message.get("id") or node_id,
            "metadata": metadata | title,
        }
        if tool_calls:
            given["tool_calls"] = tool_calls
        if message.get("create_time") or conversation.get("create_time"):
            given["occurred_at"] = moment(message.get("create_time") or conversation["create_time"], "create_time")
        yield session_id, f"message {number}", given


def _branch(mapping: Mapping[str, Any], leaf: str | None) -> list[str]:
    """The ids of the nodes from the root to the leaf; without one to the last child of each."""
    if leaf not in mapping:
        roots = [node_id for node_id, node in mapping.items() if node.get("parent") not in mapping]
        leaf = roots[0] if roots else None
        while leaf is not None and (children := [one for one in mapping[leaf].get("children", []) if one in mapping]):
            leaf = children[-1]
    path = dict[str, None]()
    while leaf is not None and leaf in mapping:
        if leaf in path:
            raise ValueError(f"its messages go round in a circle at {leaf}")
        path[leaf] = None
        leaf = mapping[leaf].get("parent")
    return list(path)[::-1]


def _is_hidden(message: Mapping[str, Any]) -> bool:
    metadata, kind = message.get("metadata") or {}, (message.get("content") or {}).get("content_type")
    is_empty_system = message["author"]["role"] == "system" and not any(
        (message.get("content") or {}).get("parts") or []
    )
    return bool(metadata.get("is_visually_hidden_from_conversation")) or kind in _UNSAID or is_empty_system


def _chatgpt_content(message: Mapping[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """The text of a message, the call of a tool that it is, and what was attached to it."""
    content, metadata = message.get("content") or {}, dict[str, Any]()
    texts = list[str]()
    attached = [one.get("name") or one.get("id") for one in (message.get("metadata") or {}).get("attachments") or []]
    for part in content.get("parts") or []:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):  # what was spoken
            texts.append(part["text"])
        elif isinstance(part, dict):
            attached.append(part.get("content_type") or "part")
    for name in ("text", "result"):
        if isinstance(content.get(name), str):
            texts.append(content[name])
    if attached:
        metadata["attachments"] = attached
    text = "\n".join(one for one in texts if one.strip())
    recipient = message.get("recipient") or "all"
    if message["author"]["role"] == "assistant" and recipient != "all":
        return "", [{"name": recipient, "arguments": text}], metadata
    return text, None, metadata


def claude_turns(conversation: Mapping[str, Any]) -> Iterator[Made]:
    """Claude's: messages in their order. The text of attachments is left out, their names are kept."""
    session_id = f"claude-{conversation['uuid']}"
    title = {"title": conversation["name"]} if conversation.get("name") else {}
    for number, message in enumerate(conversation["chat_messages"], 1):
        blocks = [block for block in message.get("content") or [] if isinstance(block, dict)]
        texts = [block["text"] for block in blocks if block.get("type") == "text" and block.get("text")]
        content = "\n".join(texts) or message.get("text") or ""
        tool_calls = [
            {name: value for name, value in block.items() if name in ("type", "name", "input", "content", "is_error")}
            for block in blocks
            if block.get("type") in ("tool_use", "tool_result")
        ]
        files = [*(message.get("attachments") or []), *(message.get("files") or [])]
        metadata = {"attachments": [one.get("file_name") or "file" for one in files]} if files else {}
        if not content.strip() and not tool_calls:
            if not files:
                continue
            content = "[attachment]"
        given = {
            "role": {"human": "user"}.get(message["sender"], message["sender"]),
            "content": content,
            "turn_id": message["uuid"],
            "metadata": metadata | title,
        }
        if tool_calls:
            given["tool_calls"] = tool_calls
        if said := message.get("created_at") or conversation.get("created_at"):
            given["occurred_at"] = moment(said, "created_at")
        yield session_id, f"message {number}", given


def locomo_turns(conversation: Mapping[str, Any]) -> Iterator[Made]:
    """LoCoMo's: a session for each of its sessions; a turn reads as `hindsight eval` stores it, with its speaker."""
    name = conversation["sample_id"]
    for passage in locomo_passages(conversation["conversation"]):
        given = {
            "role": "user",  # both speakers are people
            "content": passage.content,
            "turn_id": passage.passage_id,
            "occurred_at": passage.occurred_at.isoformat() if passage.occurred_at else None,
        }
        yield f"{name}/{passage.session_id}", passage.passage_id, given
