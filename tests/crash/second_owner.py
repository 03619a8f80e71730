"""A second owner of one procedure in one term: the transaction of a step is committed twice.

The product has one task for each procedure and one leader for each term, and the fence stops every
other leader. Here both fail: what is left is that each commit compares the record it moves.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from keys.commit.batch import LogHead
from keys.commit.committer import Committed, Committer
from keys.commit.txn import Txn
from keys.store.kv import Kv
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict


@dataclass
class SecondOwner:
    """Sends step transaction number `at` again, behind `behind` others that follow it."""

    at: int = -1
    """-1: never; the transactions are counted."""
    behind: int = 0
    sent: int = 0
    """Transactions of steps so far, without its own."""
    was_taken: bool | None = None
    """None: its own was not sent, as the life was over before."""
    _held: Txn | None = None

    def makes(self, kv: Kv, clock: Clock, line: LogHead, *, deadline_ms: int) -> Committer:
        """As the constructor of Committer."""
        made = Committer(kv, clock, line, deadline_ms=deadline_ms)
        made.commit = partial(self._commit, made.commit)  # type: ignore[method-assign]
        return made

    async def _commit(self, commit: Any, txn: Txn, **of: Any) -> Committed:
        """*of*: what the commit belongs to, passed on as it is."""
        committed: Committed = await commit(txn, **of)
        if of.get("procedure") is None:
            return committed
        if self.sent == self.at:
            self._held = txn
        if self._held is not None and self.sent == self.at + self.behind:
            await self._again(partial(commit, self._held, **of))
            self._held = None
        self.sent += 1
        return committed

    async def _again(self, commit: Any) -> None:
        try:
            await commit()
        except Conflict:
            self.was_taken = False
        else:
            self.was_taken = True
