"""Histories past their time, with the idempotency keys that lead to them.

A key and its history go in one fenced transaction: whoever finds the key finds what it stands for
(G11, G17). Ids are UUIDv7, so the oldest histories are read first, in pages of bounded bytes. A
history goes when its retention is over, or while all histories together take more than the bytes
that the setting allows: then the oldest go first, within the day that is promised too (decision
148), but none that ended less than RECENT_MS ago.
"""

from collections.abc import Iterable, Iterator

from keys.commit.committer import StaleRead
from keys.commit.txn import Txn
from keys.key import Range
from keys.model.records import Idempotency, IdempotencyKey, ProcedureHistory, ProcedureHistoryKey
from keys.store.kv import TXN_OPS_MAX, Get, KeyPage, KeyValue, Request
from keys.store.readable import Tell, readable, skip_silently
from metasrv.leadership.tally import Due, History, PageSize, size_of
from metasrv.leadership.term import Term

KEPT_MS_MIN = 24 * 3_600_000  # promised to an idempotency key, where the bytes allow it (G11)
RECENT_MS = 3_600_000  # nothing goes for its bytes before: longer than any program of ours resends
ROWS_MAX = (TXN_OPS_MAX - 8) // 2  # of one transaction: each history compares and deletes two keys
PAGES_MAX = 500  # of one look: 30,000 histories a minute


class Retention:
    """The retention of histories in one term: the start of the next look, and a tally of bytes."""

    def __init__(self, term: Term, tell: Tell = skip_silently) -> None:
        self._term = term
        self._tell = tell
        self._start = ProcedureHistoryKey.under().start
        self._size = PageSize(ROWS_MAX)
        self.tally = term.tally

    async def tidy(self, now_ms: int) -> int:
        """Deletes what is due, as far as PAGES_MAX pages reach; how many histories it deleted.

        The next look goes on where this one ended. Raises as reads and `Committer.commit`.
        """
        await self._count()
        first = ProcedureHistoryKey.under().start
        kept = self._kept()
        deleted = 0
        for _ in range(PAGES_MAX):
            end = self._end(now_ms)
            if self._start >= end:
                self._start = first
                break
            page = await self._page(Range(self._start, end))
            rows = readable(ProcedureHistoryKey, ProcedureHistory, page.items, self._tell)
            deleted += await self._delete(tuple(self._due(rows, kept, now_ms)))
            if not page.more:
                self._start = first
                break
            self._start = page.items[-1].key + b"\0"
        return deleted

    @property
    def bytes_max(self) -> int:
        return self._term.settings.values.history_bytes_max

    async def _count(self) -> None:
        """Some more pages of what earlier terms have left."""
        for _ in range(PAGES_MAX):
            start = self.tally.counted_to
            if start is None:
                return
            keys = Range(start, ProcedureHistoryKey.under().end)
            self.tally.count(await self._read(keys, self.tally.size.rows))

    def _end(self, now_ms: int) -> bytes:
        """The key before which a history may be due."""
        retention_ms = self._term.settings.values.history_retention_ms
        if self.tally.size_bytes > self.bytes_max:
            retention_ms = RECENT_MS
        return ProcedureHistoryKey.of_ids_before(max(0, now_ms - retention_ms)).end

    def _kept(self) -> set[str]:
        """Returns the ids of living procedures and of their parents.

        Histories of these procedures and of their children are kept: a parent looks for its
        children, and the parent of a living procedure must be found (G17).
        """
        records = [(name, entry.held.record) for name, entry in self._term.manager.living()]
        return {name for name, _ in records} | {
            record.parent for _, record in records if record.parent
        }

    def _due(self, rows: Iterable[History], kept: set[str], now_ms: int) -> Iterator[Due]:
        """One value is unpacked at a time: a page may unpack to a hundred times its bytes."""
        old_ms = now_ms - self._term.settings.values.history_retention_ms
        too_many = self.tally.size_bytes - self.bytes_max
        for row in rows:
            finished_ms, last = row.value.finished_at_ms, row.value.last
            is_old = finished_ms <= old_ms
            may_go = too_many > 0 and finished_ms <= now_ms - RECENT_MS
            if (is_old or may_go) and kept.isdisjoint((row.key.procedure, last.parent)):
                too_many -= size_of(row)
                is_early = finished_ms > now_ms - KEPT_MS_MIN
                yield Due(row.key, row.revision, size_of(row), last.client.idempotency, is_early)

    async def _page(self, keys: Range) -> KeyPage:
        page = await self._read(keys, self._size.rows)
        self._size.learn(page)
        return page

    async def _read(self, keys: Range, rows: int) -> KeyPage:
        ports = self._term.ports
        return await ports.kv.range(
            Get(keys.start, keys.end, limit=rows), deadline_ms=ports.deadline_ms
        )

    async def _delete(self, rows: tuple[Due, ...]) -> int:
        """All of *rows*, or none where one of them, or its key, is not as it was read."""
        if not rows:
            return 0
        items_by_digest = await self._known(rows)
        txn, going = Txn(), []
        for row in rows:
            item = items_by_digest.get(row.idempotency)
            items = () if item is None else (item,)
            values = tuple(readable(IdempotencyKey, Idempotency, items, self._tell))
            if len(values) < len(items):
                continue  # its key cannot be read, and leads to it perhaps
            going.append(row)
            txn = txn.expecting(row.key, row.revision).delete(row.key)
            for key, value, revision, _ in values:
                if value.procedure == row.key.procedure:
                    txn = txn.expecting(key, revision).delete(key)
        if not going:
            return 0
        try:
            await self._term.committer.commit(txn)
        except StaleRead:
            return 0
        self.tally.deleted(going)
        return len(going)

    async def _known(self, rows: tuple[Due, ...]) -> dict[str | None, KeyValue]:
        """The idempotency keys of *rows*, as far as they have one."""
        digests = tuple(dict.fromkeys(row.idempotency for row in rows if row.idempotency))
        if not digests:
            return {}
        reads = Request(reads=tuple(Get(bytes(IdempotencyKey(digest))) for digest in digests))
        ports = self._term.ports
        answer = await ports.kv.txn(reads, deadline_ms=ports.deadline_ms)
        pairs = zip(digests, answer.ranges, strict=True)
        return {digest: items[0] for digest, items in pairs if items}
