"""Made from access.py by `make generate`: change that one."""

from __future__ import annotations

from typing import cast

from hindsight.calls import Labels
from hindsight.results import Grant
from hindsight.sync_embeddings import Embeddings


class Access(Embeddings):
    """Rights on banks."""

    def grant_access(self, bank: str, principal: str, rights: str, *, types: Labels | None = None) -> None:
        """Gives a principal rights on a bank, in place of those that it had. For its owner.

        rights: reader; adder (stores, and is told nothing of what the bank holds); writer; owner. types: the only types
        of memory that an adder or writer may write.
        """
        self._value("grant_access", bank=bank, principal=principal, rights=rights, types=types)

    def revoke_access(self, bank: str, principal: str) -> bool:
        """Takes a principal's rights on a bank; False where there were none. For its owner; the last owner stays."""
        return cast(bool, self._value("revoke_access", bank=bank, principal=principal))

    def access(self, bank: str) -> list[Grant]:
        """Who may do what in a bank. For its readers."""
        return self._rows(Grant, "access", bank=bank)
