"""What the servers serve of conversations: turns, the desk of a session, the queue of those that wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any

from pydantic import Field

from hindsight.arguments import Identifier, JsonObjects, Required, Text, Whole, Word
from hindsight.client import AsyncHindsight
from hindsight.config import Settings
from hindsight.results import LoggedTurn, QueuedSession, Source, WorkingMemory


class ConversationService(ABC):
    """The part of the memory service that REST offers to whoever runs an agent; the agent itself needs none of it."""

    settings: Settings

    @property
    @abstractmethod
    def client(self) -> AsyncHindsight:
        """The client, while the service is opened."""

    async def log_turns(self, session_id: Required, turns: JsonObjects, bank: Word = None) -> list[LoggedTurn]:
        """Keeps messages of a session as they were said."""
        return await self.client.log_turns(bank or self.settings.bank, session_id, turns)

    async def log(
        self,
        session_id: Annotated[Required, Field(description="The conversation, as the application calls it.")],
        turns: Annotated[
            JsonObjects,
            Field(description="Messages in order, each with role (user, assistant, tool) and content."),
        ],
        bank: Annotated[Word, Field(description="The bank of memories. Leave out for the usual one.")] = None,
    ) -> dict[str, list[LoggedTurn]]:
        """Keeps messages of a session as they were said, for an agent that logs its own conversation."""
        return {"turns": await self.log_turns(session_id, turns, bank)}

    async def close_session(self, session_id: Required, bank: Word = None) -> dict[str, str]:
        """Says that a conversation is over."""
        await self.client.close_session(bank or self.settings.bank, session_id)
        return {"session_id": session_id, "state": "closed"}

    async def working_get(self, session_id: Required, max_tokens: Whole = None, bank: Word = None) -> WorkingMemory:
        """A session's desk."""
        return await self.client.working_get(bank or self.settings.bank, session_id, max_tokens=max_tokens)

    async def working_set(
        self, session_id: Required, key: Required, value: Any = None, ttl: Text = None, bank: Word = None
    ) -> dict[str, str]:
        """Puts a value on a session's desk, or takes it away."""
        await self.client.working_set(bank or self.settings.bank, session_id, key, value, ttl=ttl)
        return {"session_id": session_id, "key": key}

    async def queue(self, most: Whole = None, bank: Word = None) -> list[QueuedSession]:
        """The sessions that wait to be distilled."""
        return await self.client.queue(bank or self.settings.bank, most=100 if most is None else most)

    async def sources(self, memory_id: Identifier, bank: Word = None) -> list[Source]:
        """The turns that a memory was distilled from."""
        return await self.client.sources(bank or self.settings.bank, memory_id)
