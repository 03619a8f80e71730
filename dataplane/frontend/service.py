"""What the API can ask of a frontend: each statement is a transaction with one table. No HTTP."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from base.clock import Clock
from base.errors import Conflict, MetaError, NotFound, Unavailable
from base.fanout import fan_out
from base.offload import is_short, offload
from base.rows.layout import Column, Layout
from base.rows.outcome import RegionOutcome, WriteResult
from base.rows.statement_ids import id_of_batch
from base.schema.values import Value
from base.wire.rows import ChecksumAnswer, RegionSum
from dataplane.frontend.catalog import LiveCatalog, Name
from dataplane.frontend.given import Given, JsonRows, Op, from_arrow, from_rows
from dataplane.frontend.holder import Holder
from dataplane.frontend.latency import Latency
from dataplane.frontend.metrics import FrontendMetrics
from dataplane.frontend.query import Range
from dataplane.frontend.regions import Call, Regions
from dataplane.frontend.scans import (
    REGIONS_AT_ONCE,
    Found,
    IndexScan,
    OpenScan,
    OpenScans,
    Place,
    RowScan,
    Scan,
    read_token,
    shown,
    token_apart,
    token_of,
)
from dataplane.frontend.schema import Schema
from dataplane.frontend.transactions import Transaction, Transactions
from dataplane.frontend.writing import Wish, Writing

T = TypeVar("T")
CATCH_UP_S_MAX = 2.0
"""For a table that is not known: how long to wait for the word of the leader."""
Keys = Sequence[Sequence[Value]]


@dataclass(frozen=True, slots=True)
class Written:
    rows: int
    schema_version: int
    regions: tuple[RegionOutcome, ...]

    @property
    def region_ids(self) -> tuple[str, ...]:
        return tuple(one.region_id for one in self.regions)


@dataclass(frozen=True, slots=True)
class PageOf:
    """An answer to a read."""

    columns: Sequence[Column]
    rows: pa.RecordBatch
    schema_version: int
    next_page_token: str | None = None


@dataclass(frozen=True, slots=True)
class Service:
    holder: Holder
    catalog: LiveCatalog
    transactions: Transactions
    regions: Regions
    writing: Writing
    clock: Clock
    latency: Latency
    metrics: FrontendMetrics
    scans: OpenScans = field(default_factory=OpenScans)

    # -- writes

    async def write(self, name: Name, op: Op, rows: JsonRows, statement_id: str) -> Written:
        """Raises what `settle` says (base/rows/outcome.py), and Refused before anything is sent."""
        with self._running() as transaction:
            schema = await self._bound(transaction, name)
            read = partial(_from_rows, rows, op)
            short = is_short(len(rows), 0)
            wish = replace(self._wish(transaction, op, read, statement_id), is_short=short)
            done, version = await self._write(schema, wish)
        return Written(done.rows, version, done.regions)

    async def write_stream(
        self,
        name: Name,
        op: Op,
        batches: Callable[[Callable[[], float]], AsyncIterator[pa.RecordBatch]],
        statement_id: str,
    ) -> Written:
        """Batch by batch as they come, each atomic within a region. Ends at the first that cannot
        be applied; the error says how many rows were."""
        rows, regions = 0, dict[str, RegionOutcome]()
        with self._running() as transaction:
            schema = await self._bound(transaction, name)
            left_s = _left_of(self.transactions.until_ms(transaction), self.clock)
            try:
                number = 0
                async for batch in batches(left_s):
                    self.transactions.check_age(transaction, self.clock.mono_ms())
                    read = partial(_from_arrow, batch, op)
                    id = id_of_batch(statement_id, number)
                    short = is_short(batch.num_rows, batch.nbytes)
                    wish = replace(self._wish(transaction, op, read, id), is_short=short)
                    done, _ = await self._write(schema, wish)
                    schema = self.catalog.latest(schema)
                    rows, number = rows + done.rows, number + 1
                    regions |= {one.region_id: _added(regions, one) for one in done.regions}
            except TimeoutError as error:
                limit_s = self.transactions.age_max_ms / 1000
                raise Conflict("transaction-too-old", limit_s=limit_s, rows_applied=rows) from error
            except MetaError as error:
                raise type(error)(error.code, **{**error.facts, "rows_applied": rows}) from error
        return Written(rows, schema.version, tuple(regions.values()))

    # -- reads

    async def by_key(self, name: Name, key_of: Callable[[Layout], Sequence[Value]]) -> PageOf:
        return await self.by_keys(name, lambda layout: [key_of(layout)], keys=1)

    async def by_keys(self, name: Name, keys_of: Callable[[Layout], Keys], keys: int) -> PageOf:
        """The rows that are there, by region. *keys*: how many there are."""
        with self._running() as transaction:

            async def read(schema: Schema) -> PageOf:
                short = is_short(keys, 0)
                by_number = await offload(short, _by_number, schema.layout, keys_of)
                call = self._call(transaction)
                asked = [
                    partial(self.regions.rows, schema, number, list(keys), call)
                    for number, keys in sorted(by_number.items())
                ]
                found = await fan_out(asked, at_once=REGIONS_AT_ONCE)
                columns = schema.layout.columns
                return PageOf(columns, shown(columns, found), schema.version)

            schema = await self._bound(transaction, name)
            return await self._finished(transaction, schema, read)

    async def page_apart(
        self, name: Name, make: Callable[[Schema], Scan], at: Place | None, limit: int
    ) -> PageOf:
        """One page as a transaction of its own. *at* is where it begins; None: at the first row."""
        with self._running() as transaction:

            async def read(schema: Schema) -> PageOf:
                scan = make(schema)
                place = scan.start if at is None else at
                found = await scan.page(self.regions, place, limit, self._call(transaction))
                token = None if found.following is None else token_apart(found.following)
                return PageOf(scan.columns, found.rows, schema.version, token)

            schema = await self._bound(transaction, name)
            make(schema)
            return await self._finished(transaction, schema, read, make)

    async def checksum(
        self, name: Name, region_of: Callable[[Layout], int | None]
    ) -> ChecksumAnswer:
        """Of the region that is named, or all."""
        with self._running() as transaction:

            async def read(schema: Schema) -> ChecksumAnswer:
                region = region_of(schema.layout)
                numbers = range(schema.layout.router.regions) if region is None else (region,)
                call = self._call(transaction)
                asked = [partial(self.regions.checksum, schema, number, call) for number in numbers]
                found = await fan_out(asked, at_once=REGIONS_AT_ONCE)
                total = sum(int(one.checksum, 16) for one in found) % (1 << 64)
                return ChecksumAnswer(
                    rows=sum(one.rows for one in found),
                    checksum=f"{total:016x}",
                    regions=tuple(RegionSum(**one.model_dump()) for one in found),
                    schema_version=schema.version,
                )

            schema = await self._bound(transaction, name)
            return await self._finished(transaction, schema, read)

    async def begin_scan(self, name: Name, names: Sequence[str] | None) -> OpenScan:
        """Of whole rows, or of some columns. It is open until `end_scan`."""
        return await self.begin(name, lambda schema: RowScan(schema, schema.layout.chosen(names)))

    async def begin(self, name: Name, make: Callable[[Schema], Scan]) -> OpenScan:
        """It is open until `end_scan`."""
        self.holder.check()
        transaction = self.transactions.begin(self.clock.mono_ms())
        opened: OpenScan | None = None
        try:
            opened = OpenScan(make(await self._bound(transaction, name)), transaction)
            self.scans.keep(opened)
        finally:
            if opened is None:
                self.transactions.end(transaction)
        return opened

    async def begin_index_scan(
        self, name: Name, index: str, range_of: Callable[[Schema], Range]
    ) -> tuple[OpenScan, Place]:
        def make(schema: Schema) -> Scan:
            found = range_of(schema)
            return IndexScan(schema, schema.index(index), found.end, found.first)

        opened = await self.begin(name, make)
        return opened, opened.scan.start

    def resume_scan(self, token: str) -> tuple[OpenScan, Place]:
        """Raises Refused `bad-page-token`, `page-token-expired`."""
        self.holder.check()
        id, place = read_token(token)
        return self.scans.find(id), place

    def end_scan(self, opened: OpenScan) -> None:
        self.scans.forget(opened.transaction)
        self.transactions.end(opened.transaction)

    async def page(self, opened: OpenScan, at: Place, limit: int) -> tuple[PageOf, Place | None]:
        """The scan stays open if there is more, and is over if this fails or was the last."""
        transaction = opened.transaction
        following: Place | None = None

        async def read(schema: Schema) -> tuple[Scan, Found]:
            scan = opened.scan.under(schema)
            return scan, await scan.page(self.regions, at, limit, self._call(transaction))

        try:
            self.transactions.check_age(transaction, self.clock.mono_ms())
            known = opened.scan.schema
            scan, found = await self._finished(transaction, known, read, opened.scan.under)
            following = found.following
        finally:
            if following is None:
                self.end_scan(opened)
        token = None
        if following is not None:
            self.scans.keep(OpenScan(scan, transaction))
            token = token_of(transaction, following)
        return PageOf(scan.columns, found.rows, scan.schema.version, token), following

    def current(self, opened: OpenScan) -> OpenScan:
        """The same under the schema of its last page. Raises Refused if it is not open."""
        return self.scans.find(opened.transaction.id)

    def end_old_scans(self) -> None:
        """What nobody has read to its end in time."""
        now_ms = self.clock.mono_ms()
        for opened in self.scans:
            if now_ms >= self.transactions.until_ms(opened.transaction):
                self.end_scan(opened)

    # -- the process

    def check_alive(self) -> None:
        """Raises Unavailable once the lease has ended: a supervisor starts it again."""
        if self.holder.is_over:
            self.holder.check_lease()

    def exposition(self) -> bytes:
        until_ms = self.holder.lease.deadline_ms or 0
        left_ms = max(0, until_ms - self.clock.mono_ms())
        return self.metrics.text(self.catalog.version or 0, left_ms, len(self.transactions))

    # -- inside

    @contextmanager
    def _running(self) -> Iterator[Transaction]:
        """A transaction as long as one request."""
        self.holder.check()
        began_ms = self.clock.mono_ms()
        with self.transactions.running(began_ms) as transaction:
            yield transaction
        self.latency.took(self.clock.mono_ms() - began_ms)

    async def _bound(self, transaction: Transaction, name: Name) -> Schema:
        """To the newest version known; what is not known may have been made a moment ago."""
        try:
            schema = self.catalog.named(name)
        except NotFound:
            await self._catch_up()
            schema = self.catalog.named(name)
        self.transactions.bind(transaction, schema.layout.table_id, schema.version)
        return schema

    async def _catch_up(self) -> None:
        try:
            async with asyncio.timeout(CATCH_UP_S_MAX):
                await self.holder.newest()
        except TimeoutError as error:
            raise Unavailable("not-ready", what="the catalog of this frontend") from error

    def _wish(
        self, transaction: Transaction, op: Op, read: Callable[[Layout], Given], id: str
    ) -> Wish:
        def bind(newer: Schema) -> None:
            self.transactions.bind(transaction, newer.layout.table_id, newer.version)

        return Wish(op, read, id, self._call(transaction).until, bind)

    async def _write(self, schema: Schema, wish: Wish) -> tuple[WriteResult, int]:
        done, version = await self.writing.run(schema, wish)
        self.metrics.rows.labels(wish.op).inc(done.rows)
        return done, version

    async def _finished(
        self,
        transaction: Transaction,
        schema: Schema,
        read: Callable[[Schema], Awaitable[T]],
        must_fit: Callable[[Schema], object] = lambda newer: None,
    ) -> T:
        """Under the newest schema, if that which it began with has ended meanwhile. *must_fit*
        raises if it cannot be read under that: then no later one is waited for."""
        until = self._call(transaction).until
        while True:
            try:
                return await read(schema)
            except Conflict as error:
                if error.code != "schema-version-stale":
                    raise
                try:
                    async with asyncio.timeout_at(until):
                        newer = await self.catalog.newer(schema)
                except TimeoutError:
                    raise error from None
                must_fit(newer)
                self.transactions.bind(transaction, newer.layout.table_id, newer.version)
                schema = newer

    def _call(self, transaction: Transaction) -> Call:
        """Until the transaction is too old."""
        left_s = _left_of(self.transactions.until_ms(transaction), self.clock)()
        return Call(transaction.id, asyncio.get_running_loop().time() + left_s)


def _from_rows(rows: JsonRows, op: Op, layout: Layout) -> Given:
    return from_rows(layout, rows, op)


def _from_arrow(batch: pa.RecordBatch, op: Op, layout: Layout) -> Given:
    return from_arrow(layout, batch, op)


def _added(known: Mapping[str, RegionOutcome], one: RegionOutcome) -> RegionOutcome:
    """What a region did of all batches of a stream so far."""
    before = known.get(one.region_id)
    if before is None:
        return one
    repeated = before.repeated and one.repeated
    return replace(one, rows=before.rows + one.rows, repeated=repeated)


def _by_number(layout: Layout, keys_of: Callable[[Layout], Keys]) -> dict[int, dict[bytes, None]]:
    """Encoded keys, each once, by the number of their region."""
    found: dict[int, dict[bytes, None]] = {}
    for values in keys_of(layout):
        found.setdefault(layout.number_of(values), {})[layout.key_bytes(values)] = None
    return found


def _left_of(until_ms: int, clock: Clock) -> Callable[[], float]:
    return lambda: max(0.0, (until_ms - clock.mono_ms()) / 1000)
