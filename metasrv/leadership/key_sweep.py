"""Idempotency keys that lead to nothing: their history is gone, and not by this service.

A key goes with its history (metasrv/leadership/retention.py). What is left by a restore, or by
hands, is found here: a slow walk over all keys in pages, from a place that chance picks in each
term, so that short terms look at all of them too.
"""

from keys.commit.committer import StaleRead
from keys.commit.txn import Txn
from keys.model.records import Idempotency, IdempotencyKey, ProcedureHistoryKey, ProcedureKey
from keys.store.kv import TXN_OPS_MAX, Get, Request
from keys.store.readable import KeyRow, Tell, readable, skip_silently
from metasrv.leadership.retention import KEPT_MS_MIN
from metasrv.leadership.term import Term
from metasrv_base.ids import UUID_TEXT

ROWS_MAX = (TXN_OPS_MAX - 8) // 3  # of one transaction: each compares three keys
PAGES_MAX = 100  # of one look: 4,000 keys a minute

Known = KeyRow[IdempotencyKey, Idempotency]


class KeySweep:
    """The sweep of one term over the idempotency keys."""

    def __init__(self, term: Term, tell: Tell = skip_silently) -> None:
        self._term = term
        self._tell = tell
        prefix = int(term.ports.rng.random() * 16**8)
        self._start = bytes(IdempotencyKey(f"{prefix:08x}".ljust(64, "0")))

    async def tidy(self, now_ms: int) -> int:
        """Looks at some more pages; how many keys it deleted. Raises as reads and `commit`."""
        keys, ports = IdempotencyKey.under(), self._term.ports
        deleted = 0
        for _ in range(PAGES_MAX):
            get = Get(self._start, keys.end, limit=ROWS_MAX)
            page = await ports.kv.range(get, deadline_ms=ports.deadline_ms)
            rows = readable(IdempotencyKey, Idempotency, page.items, self._tell)
            old = tuple(row for row in rows if _is_old(row, now_ms))
            deleted += await self._delete(old)
            if not page.more:
                self._start = keys.start
                break
            self._start = page.items[-1].key + b"\0"
        return deleted

    async def _delete(self, rows: tuple[Known, ...]) -> int:
        """Deletes those of *rows* that lead to no procedure, alive or over. Returns their
        number."""
        txn, deleted = Txn(), 0
        for row, leads in zip(rows, await self._lead(rows), strict=True):
            if not leads:
                record, history = _procedure(row)
                txn = txn.expecting(row.key, row.revision).delete(row.key)
                txn = txn.expecting(record, 0).expecting(history, 0)
                deleted += 1
        if not deleted:
            return 0
        try:
            await self._term.committer.commit(txn)
        except StaleRead:
            return 0
        return deleted

    async def _lead(self, rows: tuple[Known, ...]) -> tuple[bool, ...]:
        """Returns for each row whether its procedure is stored, alive or over."""
        if not rows:
            return ()
        reads = tuple(Get(bytes(key), keys_only=True) for row in rows for key in _procedure(row))
        ports = self._term.ports
        answer = await ports.kv.txn(Request(reads=reads), deadline_ms=ports.deadline_ms)
        ranges = answer.ranges
        return tuple(
            bool(ranges[position] or ranges[position + 1]) for position in range(0, len(ranges), 2)
        )


def _is_old(row: Known, now_ms: int) -> bool:
    """Returns whether the key is older than KEPT_MS_MIN and names a procedure.

    A key that names no procedure was not written by this program, and stays.
    """
    is_over = row.value.at_ms + KEPT_MS_MIN <= now_ms
    return is_over and UUID_TEXT.fullmatch(row.value.procedure) is not None


def _procedure(row: Known) -> tuple[ProcedureKey, ProcedureHistoryKey]:
    return ProcedureKey(row.value.procedure), ProcedureHistoryKey(row.value.procedure)
