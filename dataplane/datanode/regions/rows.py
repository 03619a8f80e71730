"""Writes and reads of one region, judged by its route and its lease, then handed to its engine."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing, contextmanager, suppress
from functools import partial
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from dataplane.datanode.copies.taking_files import snapshot_of
from dataplane.datanode.regions.batch_body import read_batch
from dataplane.datanode.regions.refusals import must_fit_schema
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.row_answers import (
    JSON_BYTES_MAX,
    JSON_ROWS_MAX,
    JSON_TIMES,
    answer_schema,
    arrow_bytes,
    check_columns,
    json_rows,
    key_of,
    nothing_of,
)
from dataplane.datanode.regions.scan_slots import READ_BYTES, ReaderKind, ScanSlots
from dataplane.datanode.regions.slot import Slot
from dataplane.datanode.regions.values_page import ValuesPage
from dataplane.region.engine.reading import Reserve, ScanBounds
from dataplane.region.engines.engine import ReadableRegion
from dataplane.region.format.columns import chosen, value_fields
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.parts import PartSize, cut
from dataplane.region.format.room import LookupRoom, NoRoomError
from dataplane.region.reads.lookup import rows_at_once
from metasrv_base.concurrency.look_ahead import LookAhead
from metasrv_base.concurrency.reservations import HeldBytes, Reservations
from metasrv_base.concurrency.run_in_thread import is_short_columnar, run_in_thread
from metasrv_base.errors import Conflict, NotFound, Refused, Unavailable
from metasrv_base.rows.arrow_parts import ArrowParts
from metasrv_base.wire.limits import ROW_BYTES_MAX
from metasrv_base.wire.node.batches import (
    BatchHeader,
    BatchResult,
    ChecksumRequest,
    ChecksumResult,
    GetRows,
    ReadHeader,
    Row,
    Rows,
    ScanRows,
)
from metasrv_base.wire.node.inputs import Borrowed, Snapshot

BODIES_BYTES = 128 << 20
"""Memory for all batches that are being received or written at one moment."""
BODY_TIMES = 3
"""The memory that a batch takes, by the bytes of its body: the body while it is joined, and its
rows once more as they are logged."""
REQUEST_BYTES = 32 << 10
"""The memory that a request takes besides: its connection, its objects and its task."""
PIECE = PartSize(rows=1_000_000, bytes=1 << 20)
"""The largest piece of a stream: it is sent at once, and a stream keeps to its bound of bytes to
within one piece. A piece holds one row at least."""
KEYS_AT_ONCE = 2_000
FIRST_KEYS = 256
"""Looked up together before it is known how large the rows are."""
FEW_KEYS = 8
FEW_BYTES = 256 << 10
"""The most bytes looked up on the event loop, if in memory: less than a thread and back."""
FIRST_BYTES = 64 << 10
"""Bytes of the rows looked up first; then four times as many, then fewer keys."""
DECODED_BYTES = 512 << 10
DECODED_AT_ONCE = 4
"""The memory of a row group, and the number that a lookup has at once while it decodes one."""
KEY_BYTES = 250  # measured: of a key that is looked up, beside its bytes
GET_PART_BYTES = 4 << 20
"""The most bytes of rows that are looked up together, unless it is one row."""
GET_TIMES = 2
"""The memory that a lookup takes, by the bytes of its rows: as they are found, and in order."""
GET_BYTES_MAX = 16 << 20
"""The most bytes of rows of one `get`, whose answer is made before it is sent."""
ANSWER_TIMES = 2
"""The memory that an Arrow answer takes by the bytes of its rows: in messages, and joined."""
CHECKSUMS_AT_ONCE = 2
"""The most checksums at a time. The others hold nothing while they wait."""


class ReadSource(NamedTuple):
    """The rows that a read is answered from."""

    region: ReadableRegion
    must_hold: Callable[[], None]
    """Raises Unavailable unless rows that were read until now may be answered."""


class RowService:
    """The one place where rows come in and go out."""

    def __init__(
        self, regions: NodeRegionSet, read_bytes: int = READ_BYTES, body_bytes: int = BODIES_BYTES
    ) -> None:
        """*read_bytes*, *body_bytes*: of the node's memory."""
        self._regions = regions
        self._bodies = Reservations("batches that are being written", body_bytes)
        self._scans = ScanSlots(read_bytes)
        self._checksums = asyncio.Semaphore(CHECKSUMS_AT_ONCE)

    @property
    def read_bytes(self) -> int:
        """Bytes that all reads hold at present."""
        return self._scans.bytes

    def room_for(self, body_bytes: int) -> HeldBytes:
        """A context. Raises Unavailable when the memory for batches is taken."""
        return self._bodies.hold(BODY_TIMES * body_bytes + REQUEST_BYTES)

    async def write(self, region_id: int, body: bytes) -> BatchResult:
        header, rows = await run_in_thread(is_short_columnar(0, len(body)), read_batch, body)
        await self._regions.hand_overs.may_write(region_id, header.epoch)
        with self._noted(header, header.holder):
            slot = self._checked_slot(region_id, header)
            self._regions.must_order(slot)
            assert slot.owner is not None
            applied = await slot.owner.write(header, rows)
        return BatchResult(
            region_id=str(region_id),
            version=applied.version,
            rows=applied.rows,
            repeated=applied.repeated,
        )

    async def get_arrow(self, region_id: int, query: GetRows, held: HeldBytes) -> bytes:
        """Rows or entries by key as one Arrow stream."""
        table, more = await self._get(region_id, query, held, GET_BYTES_MAX)
        held.grow(ANSWER_TIMES * table.nbytes)
        return arrow_bytes(table, more=more)

    async def get_json(self, region_id: int, query: GetRows, held: HeldBytes) -> Rows:
        table, more = await self._get(region_id, query, held, JSON_BYTES_MAX)
        held.grow(JSON_TIMES * table.nbytes)
        columns = self._readable(region_id, query).region.spec.columns
        return Rows(rows=await asyncio.to_thread(json_rows, table, columns), more=more)

    def reading_keys(self) -> AbstractContextManager[HeldBytes]:
        """A slot for one `get`, until its answer has left. Raises Unavailable."""
        return self._scans.slot(ReaderKind.KEYS, REQUEST_BYTES)

    async def _get(
        self, region_id: int, query: GetRows, held: HeldBytes, bytes_max: int
    ) -> tuple[pa.Table, bool]:
        """Rows or entries, and whether there may be more of the keys above them."""
        region, must_hold = self._readable(region_id, query)
        held.grow(sum(KEY_BYTES + 2 * len(key) for key in query.keys))
        keys = [key_of(text, f"/keys/{position}") for position, text in enumerate(query.keys)]
        check_columns(region.spec.columns, query.columns)
        if len(keys) <= FEW_KEYS and query.index is None:
            room = LookupRoom(min(FEW_BYTES, query.bytes_max or FEW_BYTES))
            there = region.reader.get_resident(keys, query.columns, query.schema_version, room)
            if there is not None:
                held.grow(there.nbytes)
                return there, False
        answer = await asyncio.to_thread(get_bounded, region, keys, query, bytes_max, held)
        must_hold()
        return answer

    def scanning(
        self, region_id: int, query: ScanRows, kind: ReaderKind
    ) -> AbstractContextManager[HeldBytes]:
        """A slot for one scan, until its answer has left. Raises Unavailable, and as reads do."""
        self._readable(region_id, query)
        return self._scans.slot(kind, REQUEST_BYTES)

    async def scan_json(self, region_id: int, query: ScanRows, held: HeldBytes) -> Rows:
        """Returns at most `limit` rows, JSON_ROWS_MAX and JSON_BYTES_MAX, or as many as *held* can
        grow by; `more`: there may be more."""
        region = self._readable(region_id, query).region
        rows: list[Row] = []
        taken_bytes, limit = 0, min(query.limit, JSON_ROWS_MAX)
        async with aclosing(self._parts(region_id, query, limit + 1, held)) as parts:
            async for part in parts:
                try:
                    held.grow(JSON_TIMES * part.nbytes)
                except Unavailable:
                    if not rows:
                        raise
                    return Rows(rows=rows[:limit], more=True)
                rows.extend(await asyncio.to_thread(json_rows, part, region.spec.columns))
                taken_bytes += part.nbytes
                if taken_bytes > JSON_BYTES_MAX:
                    return Rows(rows=rows[:limit], more=True)
        return Rows(rows=rows[:limit], more=len(rows) > limit)

    async def scan_arrow(self, region_id: int, query: ScanRows) -> AsyncGenerator[bytes]:
        """An IPC stream of at most `limit` rows and about `bytes_max` bytes. If the lease ends
        meanwhile the stream is cut: a reader sees that its end is missing."""
        columns = self._readable(region_id, query).region.spec.columns
        stream: ArrowParts | None = None
        room = query.bytes_max
        kind = ReaderKind.STREAM if room is None else ReaderKind.PAGE
        with self.scanning(region_id, query, kind) as held:
            async with aclosing(self._parts(region_id, query, query.limit, held)) as parts:
                async for part in parts:
                    stream = stream or ArrowParts(part.schema)
                    part_bytes = part.nbytes
                    yield stream.part(part)
                    del part  # it holds the whole window of which it is a piece
                    if room is not None:
                        room -= part_bytes
                        if room <= 0:
                            yield stream.part(nothing_of(stream.schema))
                            break
        stream = stream or ArrowParts(answer_schema(query, columns))
        yield stream.end()

    async def scan_values(self, region_id: int, query: ScanRows) -> AsyncGenerator[bytes]:
        """Yields parts of values alone until there are `limit` rows or `bytes_max`."""
        (region, must_hold), keys = self._range(region_id, query)
        page = ValuesPage(query.limit, query.bytes_max)
        kind = ReaderKind.STREAM if query.bytes_max is None else ReaderKind.PAGE
        with ExitStack() as reading:
            held = reading.enter_context(self.scanning(region_id, query, kind))
            at_once, version = rows_at_once(query.limit), query.schema_version
            parts = region.reader.scan_values(keys, query.columns, at_once, version, held.grow)
            ahead = LookAhead(parts, reading.pop_all().close)
        try:
            while not page.is_full and (part := await ahead.take()) is not None:
                must_hold()
                page.count(part)
                if not page.is_full:
                    ahead.begin()
                following, message = part.following, [page.message(part)]
                del part  # the next one is decoded while this message leaves
                yield message.pop()
                if page.is_full:
                    yield page.mark(following)
        finally:
            ahead.close()
        yield page.end(pa.schema(value_fields(chosen(region.spec.columns, query.columns))))

    async def checksum(self, region_id: int, query: ChecksumRequest) -> ChecksumResult:
        """Raises Unavailable where there is no memory to scan the region."""
        region, must_hold = self._readable(region_id, query)
        async with self._checksums:
            with self._scans.slot(ReaderKind.STREAM, REQUEST_BYTES) as held:
                digest, version = region.reader.digest, query.schema_version
                totals = await asyncio.to_thread(digest, version, query.index, held.grow)
        must_hold()
        return ChecksumResult(region_id=str(region_id), rows=totals.rows, checksum=totals.hex)

    async def flush(self, region_id: int) -> None:
        owner = self._regions.serving(region_id).owner
        assert owner is not None
        await asyncio.to_thread(owner.region.maintenance.flush)

    async def borrowed(self, region_id: int) -> Borrowed:
        """Returns the inputs of a job, which needs no lease: they never change."""
        owner = self._regions.serving(region_id).owner
        assert owner is not None
        return await asyncio.to_thread(owner.region.borrowed)

    async def snapshot(self, region_id: int, mark: str, indexes: Sequence[int] | None) -> Snapshot:
        """Returns the files as of a mark; their rows never change, whichever node leads."""
        slot = self._regions.serving(region_id)
        assert slot.owner is not None
        return await snapshot_of(slot.owner, slot.led, mark, indexes)

    # -- inside

    def _checked_slot(self, region_id: int, header: ReadHeader | BatchHeader) -> Slot:
        """The open region, if what the sender knows of it is what it is."""
        self._regions.hand_overs.must_not_follow(region_id, header.epoch)
        slot = self._regions.serving(region_id)
        if header.epoch != slot.epoch:
            raise Conflict(
                "stale-epoch", region_id=str(region_id), epoch=slot.epoch, found=header.epoch
            )
        assert slot.owner is not None
        must_fit_schema(region_id, slot.owner.region.schema, header)
        return slot

    def _readable(self, region_id: int, header: ReadHeader) -> ReadSource:
        with self._noted(header, None):
            if header.max_lag_ms is not None:
                with suppress(NotFound):  # this node leads it, or has left it
                    rows = self._regions.followed(region_id).rows_within(header.max_lag_ms)
                    must_fit_schema(region_id, rows.schema, header)
                    return ReadSource(rows, lambda: None)  # what is common is never cut
            slot = self._checked_slot(region_id, header)
        self._regions.must_have_lease(slot)
        assert slot.owner is not None
        return ReadSource(slot.owner.region, partial(self._regions.must_have_lease, slot))

    @contextmanager
    def _noted(self, header: ReadHeader | BatchHeader, holder: str | None) -> Iterator[None]:
        """Counts the requests that a floor refuses; the leader shows them (docs/decisions/0103)."""
        try:
            yield
        except Conflict as error:
            self._regions.refusals.note(error, header.table_id, holder)
            raise

    def _range(self, region_id: int, query: ScanRows) -> tuple[ReadSource, KeyRange]:
        """Checks every part of a scan's query."""
        source = self._readable(region_id, query)
        check_columns(source.region.spec.columns, query.columns)
        if query.entries_only and query.index is None:
            raise Refused("invalid-request", pointer="/index", reason="entries_only needs an index")
        if query.values_only and query.index is not None:
            raise Refused(
                "invalid-request", pointer="/values_only", reason="values_only takes no index"
            )
        first = b"" if query.from_key is None else key_of(query.from_key, "/from_key")
        end = None if query.to_key is None else key_of(query.to_key, "/to_key")
        return source, KeyRange(first, end)

    async def _parts(
        self, region_id: int, query: ScanRows, limit: int, held: HeldBytes
    ) -> AsyncGenerator[pa.RecordBatch]:
        """Record batches of bounded size whose rows were computed under the lease."""
        (region, must_hold), keys = self._range(region_id, query)
        parts = LookAhead(scanned(region, query, keys, limit, held.grow), ended=lambda: None)
        try:
            while (part := await parts.take()) is not None:
                must_hold()
                pieces = (piece.to_batches() for piece in cut(pa.Table.from_batches([part]), PIECE))
                del part  # it must not stand beside the next
                for batch in chain.from_iterable(pieces):
                    yield batch
                    del batch
                del pieces
        finally:
            parts.close()


def scanned(
    region: ReadableRegion, query: ScanRows, keys: KeyRange, limit: int, reserve: Reserve
) -> Generator[pa.RecordBatch]:
    """Rows by key or by index, or entries, as of the first `next`, which raises Unavailable where
    their memory cannot be reserved."""
    version = query.schema_version
    if query.index is None:
        return region.reader.scan(keys, query.columns, limit, version, reserve)
    if query.entries_only:
        return region.reader.scan_entries(query.index, keys, limit, version, reserve)
    bounds = ScanBounds(limit, reserve)
    return region.reader.scan_index(query.index, keys, query.columns, version, bounds)


def get_bounded(
    region: ReadableRegion, keys: list[bytes], query: GetRows, bytes_max: int, held: HeldBytes
) -> tuple[pa.Table, bool]:
    """Returns the rows or entries found, and whether the answer ended at `query.bytes_max`. Raises
    Refused when they exceed *bytes_max* and no lower bound is wanted, Unavailable when *held*
    cannot grow by what is found. Blocks its thread."""

    def get(some: list[bytes], room: LookupRoom | None = None) -> pa.Table:
        if query.index is not None:
            return region.reader.get_entries(query.index, some, query.schema_version, room)
        return region.reader.get(some, query.columns, query.schema_version, room)

    held.grow(DECODED_BYTES * min(len(keys), DECODED_AT_ONCE))
    before, part_bytes = held.bytes, FIRST_BYTES
    parts: list[pa.Table] = []
    ordered, total_bytes, first, at_once = sorted(set(keys)), 0, 0, FIRST_KEYS
    while first < len(ordered):
        held.set(before + total_bytes + GET_TIMES * part_bytes)
        try:
            parts.append(get(ordered[first : first + at_once], LookupRoom(part_bytes)))
        except NoRoomError:
            if part_bytes < GET_PART_BYTES:
                part_bytes *= 4
                continue
            if at_once > 1:
                at_once //= 2
                continue
            held.grow(GET_TIMES * ROW_BYTES_MAX)
            parts.append(get(ordered[first : first + 1]))
        first, total_bytes = first + at_once, total_bytes + parts[-1].nbytes
        if query.bytes_max is not None and total_bytes >= query.bytes_max:
            break
        if total_bytes > bytes_max:
            raise Refused("invalid-request", pointer="/keys", reason="ask for fewer keys")
        at_once = _keys_at_once(first, total_bytes)
    held.set(before + total_bytes)
    if len(parts) < 2:
        return (parts or [get([])])[0], first < len(ordered)
    # A column may have come meanwhile.
    return pa.concat_tables(parts, promote_options="default"), first < len(ordered)


def _keys_at_once(keys: int, total_bytes: int) -> int:
    """Returns the number of keys whose rows have about half of `GET_PART_BYTES`. It is estimated
    from the *keys* looked up before, whose rows had *total_bytes*."""
    return max(1, min(KEYS_AT_ONCE, GET_PART_BYTES * keys // (2 * max(total_bytes, 1))))
