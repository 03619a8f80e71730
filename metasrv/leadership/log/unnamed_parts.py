"""Parts that nothing names: of a large version that did not happen, or of a batch that is over.

Parts are written before the value that names them, so those of a change on its way look like
garbage: they are kept as long as its procedure is not over. What a log entry names goes with the
entry (keys/catalog/snapshot_writing.py).
"""

from collections.abc import Collection, Iterator, Sequence

from keys.commit.txn import Txn
from keys.key import Range
from keys.model.staging.parts import BatchPartKey, LargeUpdate, LargeUpdateKey
from keys.store.kv import PAGE_KEYS_MAX, Get, KeyValue
from keys.store.readable import readable, skip_silently
from keys.store.scan import scan
from metasrv.leadership.term import Term
from metasrv_base.concurrency.turns import slices
from metasrv_base.errors import Corrupt

DELETED_AT_ONCE = 48
"""Keys of one transaction: less than half of what it may hold, so that other changes share it."""


class UnnamedParts:
    """The chore of one term. A look reads the keys of PAGE_KEYS_MAX parts at most."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._start = BatchPartKey.under().start

    async def tidy(self, now_ms: int) -> int:
        """Looks at some more parts; how many it deleted. Raises as reads and `commit`.

        The order of the reads makes it safe. A part that is there has a procedure that lives, or is
        over; if it is over, whatever it did to the log is seen by the read that follows.
        """
        parts = await self._next_parts()
        living = self._term.manager.unfinished()
        unowned = [part for part in parts if _procedure(part) not in living]
        if not unowned:
            return 0
        named = await self._named()
        garbage = [part for part in unowned if BatchPartKey.parse(part.key).batch not in named]
        for some in slices(garbage, DELETED_AT_ONCE):
            txn = Txn()
            for item in some:
                key = BatchPartKey.parse(item.key)
                txn = txn.expecting(key, item.mod_revision).delete(key)
            await self._term.committer.commit(txn)
        return len(garbage)

    async def _next_parts(self) -> Sequence[KeyValue]:
        """Keys of parts from where the last look ended; those that are none of ours are left."""
        every, ports = BatchPartKey.under(), self._term.ports
        get = Get(self._start, every.end, limit=PAGE_KEYS_MAX, keys_only=True)
        page = await ports.kv.range(get, deadline_ms=ports.deadline_ms)
        self._start = page.items[-1].key + b"\0" if page.more else every.start
        return tuple(_ours(page.items))

    async def _named(self) -> Collection[str]:
        """Returns what the log names."""
        ports, keys = self._term.ports, Range(*LargeUpdateKey.under())
        items, _ = await scan(ports.kv, keys, deadline_ms=ports.deadline_ms)
        rows = tuple(readable(LargeUpdateKey, LargeUpdate, items, skip_silently))
        if len(rows) < len(items):
            raise Corrupt(key=LargeUpdateKey.template, reason="one cannot be read: nothing goes")
        return {row.value.staged.batch for row in rows}


def _ours(items: Sequence[KeyValue]) -> Iterator[KeyValue]:
    for item in items:
        try:
            BatchPartKey.parse(item.key)
        except Corrupt:
            continue
        yield item


def _procedure(part: KeyValue) -> str:
    """The procedure that wrote a part: its id begins the name of the batch."""
    return BatchPartKey.parse(part.key).batch.partition(".")[0]
