"""Regions as a statement reaches them: by the newest route, again and again, until its deadline."""

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TypeVar

import pyarrow as pa

from dataplane.frontend.catalog.catalog import LiveCatalog
from dataplane.frontend.catalog.near_copies import COPY_S_MAX, NearCopies
from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.planning.entries import ReadEntry
from dataplane.frontend.statements.grouped_reads import GroupAnswer, GroupedReads, ReadGroup
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.concurrency.run_in_thread import is_short_columnar, run_in_thread
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable, Unknown
from metasrv_base.rng import Rng
from metasrv_base.rows.nodes import NodePools, has_more
from metasrv_base.rows.retry import JUDGED, RegionAttempts, at_the_end, may_send_again
from metasrv_base.rows.split import body_of
from metasrv_base.wire.api.tables import RegionRouteBody
from metasrv_base.wire.node.batches import (
    BatchHeader,
    BatchResult,
    ChecksumRequest,
    ChecksumResult,
)

T = TypeVar("T")
KEYS_AT_ONCE = 2_000
KEYS_BYTES = 1 << 20
"""Bytes of keys after which one read ends: its last key may exceed them."""
ANSWER_BYTES_MAX = 16 << 20
"""Bytes of one answer of a region. An answer holds one row at least, which may exceed them."""
READS_AT_ONCE = 8


@dataclass(slots=True)
class SendLog:
    """The outcomes of the requests that sent one batch, over all its copies."""

    unknown_epoch: int = -1
    """The highest epoch of a leader that did not answer; -1: each answered."""
    judged_epoch: int = -1
    """The highest epoch of a leader that found a conflict with its rows, and so remembers no
    copy."""

    def lost(self, epoch: int) -> None:
        self.unknown_epoch = max(self.unknown_epoch, epoch)

    def refused(self, epoch: int, error: Conflict) -> None:
        """Notes a conflict. A leader that says that it does not lead, or that the schema has moved,
        has not looked for an earlier copy."""
        if error.code in JUDGED:
            self.judged_epoch = max(self.judged_epoch, epoch)

    @property
    def perhaps(self) -> bool:
        """Whether a copy may have been applied, or still be: only a leader of a higher epoch has
        read all that an older one can ever have applied (P5)."""
        return self.unknown_epoch >= 0 and self.judged_epoch <= self.unknown_epoch


@dataclass(frozen=True, slots=True)
class RegionClient:
    catalog: LiveCatalog
    nodes: NodePools
    rng: Rng
    check_lease: Callable[[], None]
    """Raises Unavailable when this process may not speak any more."""
    holder_id: str
    """The name under which regions count the requests that they refuse."""
    together: GroupedReads = field(default_factory=GroupedReads)
    near: NearCopies = field(default_factory=NearCopies)

    async def write(
        self, schema: Schema, number: int, rows: pa.RecordBatch, sent: SendLog, call: "CallBudget"
    ) -> BatchResult:
        """Durable when it returns. Raises Conflict for an expectation that does not hold, and for a
        schema version that has ended."""

        async def send(region: RegionRouteBody) -> BatchResult:
            header = BatchHeader(
                table_id=schema.layout.table_id,
                schema_version=schema.version,
                epoch=region.epoch,
                statement_id=call.statement_id,
                sent_ms=call.sent_ms,
                maintains_indexes=True,
                holder=self.holder_id,
            )
            short = is_short_columnar(rows.num_rows, rows.nbytes)
            body = await run_in_thread(short, body_of, rows, header)
            self.check_lease()
            try:
                return await self.nodes.write(region, body, call.left_ms)
            except Unknown:
                sent.lost(region.epoch)
                raise
            except Conflict as error:
                sent.refused(region.epoch, error)
                raise

        return await self._until_final(schema, number, call, send)

    async def rows(
        self,
        schema: Schema,
        number: int,
        keys: Sequence[bytes],
        call: "CallBudget",
        columns: Sequence[int] | None = None,
    ) -> pa.Table:
        """The live ones, with those columns; None: with all."""
        if columns is None and len(keys) == 1 and call.max_lag_ms is None:
            return await self._row(schema, number, keys[0], call)
        options = {} if columns is None else {"columns": list(columns)}
        return await self._by_keys(schema, number, keys, call, options)

    async def entries(
        self, schema: Schema, number: int, index_id: int, keys: Sequence[bytes], call: "CallBudget"
    ) -> Mapping[bytes, ReadEntry]:
        """Returns the entries that exist, by key."""
        table = await self._by_keys(schema, number, keys, call, {"index": index_id})
        columns = (table.column(name).to_pylist() for name in ("_entry", "_version", "_key"))
        return {key: ReadEntry(version, row) for key, version, row in zip(*columns, strict=True)}

    async def _row(self, schema: Schema, number: int, key: bytes, call: "CallBudget") -> pa.Table:
        """Reads a row together with others that are read at the same moment, at the first attempt
        only."""
        may_share = True

        async def send(region: RegionRouteBody) -> pa.Table | None:
            nonlocal may_share
            if not may_share:
                return None
            may_share = False
            table_id, version = schema.layout.table_id, schema.version
            lane = ReadGroup(region.region_id, region.address, region.epoch, table_id, version)
            return await self.together.row(lane, key, partial(ask, region))

        async def ask(region: RegionRouteBody, keys: Sequence[bytes]) -> GroupAnswer:
            texts = [key.hex() for key in keys]
            body = {**_header(schema, region, call), "keys": texts, "bytes_max": ANSWER_BYTES_MAX}
            table = await self.nodes.read_rows(region, "get", body, call.left_ms)
            places = {key: offset for offset, key in enumerate(table.column("_key").to_pylist())}
            rows = table.replace_schema_metadata(None)
            return GroupAnswer(rows, places, is_whole=not has_more(table))

        table = await self._read(schema, number, call, send)
        return await self._by_keys(schema, number, [key], call, {}) if table is None else table

    async def _by_keys(
        self,
        schema: Schema,
        number: int,
        keys: Sequence[bytes],
        call: "CallBudget",
        options: Mapping[str, object],
    ) -> pa.Table:
        """Reads rows or entries by key, in no order."""
        calls = [
            partial(self._share, schema, number, share, call, options)
            for share in shares_of(sorted(set(keys)))
        ]
        parts = await fan_out(calls, at_once=READS_AT_ONCE)
        return pa.concat_tables(chain.from_iterable(parts))

    async def _share(
        self,
        schema: Schema,
        number: int,
        keys: Sequence[bytes],
        call: "CallBudget",
        options: Mapping[str, object],
    ) -> Sequence[pa.Table]:
        """Answer after answer, each of bounded size."""
        rest, parts = keys, list[pa.Table]()
        while True:
            texts = [key.hex() for key in rest]
            body = {**options, "keys": texts, "bytes_max": ANSWER_BYTES_MAX}

            def send(
                region: RegionRouteBody, body: Mapping[str, object] = body
            ) -> Awaitable[pa.Table]:
                request = {**_header(schema, region, call), **body}
                return self.nodes.read_rows(region, "get", request, call.left_ms)

            table = await self._read(schema, number, call, send)
            parts.append(table.replace_schema_metadata(None))
            if not has_more(table):
                return parts
            name = "_entry" if "index" in options else "_key"
            rest = rest[bisect_right(rest, table.column(name)[-1].as_py()) :]

    async def scan(
        self, schema: Schema, number: int, page: "RegionPage", call: "CallBudget"
    ) -> pa.Table:
        async def send(region: RegionRouteBody) -> pa.Table:
            body = {**_header(schema, region, call), **page.asked()}
            return await self.nodes.read_rows(region, "scan", body, call.left_ms)

        return await self._read(schema, number, call, send)

    async def checksum(self, schema: Schema, number: int, call: "CallBudget") -> ChecksumResult:
        """Over all that its live rows have."""

        async def send(region: RegionRouteBody) -> ChecksumResult:
            body = ChecksumRequest.model_validate(_header(schema, region, call))
            return await self.nodes.read(region, "checksum", body, call.left_ms, ChecksumResult)

        return await self._read(schema, number, call, send)

    async def _read(
        self,
        schema: Schema,
        number: int,
        call: "CallBudget",
        send: Callable[[RegionRouteBody], Awaitable[T]],
    ) -> T:
        """A read changes nothing, so a lost answer is only a late one. It counts only while the
        lease is held after it was computed. What no copy answers, the leader does."""
        if call.max_lag_ms is not None:
            send = partial(self._by_copies, schema, number, send)
        try:
            answer = await self._until_final(schema, number, call, send)
        except Unknown as error:
            raise Unavailable("not-ready", **error.facts) from error
        self.check_lease()
        return answer

    async def _by_copies(
        self,
        schema: Schema,
        number: int,
        send: Callable[[RegionRouteBody], Awaitable[T]],
        region: RegionRouteBody,
    ) -> T:
        """One attempt of a read that a copy may answer: copies near by, then the leader."""
        loop, near = asyncio.get_running_loop(), self.near
        copies = self.catalog.copies(schema.layout.table_id, number)
        for copy in near.order(copies, loop.time(), self.rng) if len(copies) > 1 else ():
            target = region.model_copy(update={"leader": copy.node, "address": copy.address})
            try:
                async with asyncio.timeout(COPY_S_MAX):
                    answer = await send(target)
            except (MetaError, TimeoutError) as error:
                near.failed(copy, error, loop.time())
            else:
                near.answered(copy)
                return answer
        return await send(region)

    async def _until_final(
        self,
        schema: Schema,
        number: int,
        call: "CallBudget",
        send: Callable[[RegionRouteBody], Awaitable[T]],
    ) -> T:
        table_id, attempts = schema.layout.table_id, RegionAttempts(call.until, self.rng)
        sent_epoch = 0
        while True:
            try:
                region = self.catalog.region(table_id, number)
                sent_epoch = region.epoch
                return await send(region)
            except MetaError as error:
                pause_s = attempts.pause_s(error, _again)
                if pause_s is None and isinstance(error, NotFound):
                    raise at_the_end(error) from error
                if pause_s is None:
                    raise
                led_at = error.facts.get("epoch") if error.code == "stale-epoch" else None
            if isinstance(led_at, int) and led_at > sent_epoch:
                await self.catalog.until_led_at(table_id, number, led_at, pause_s)
            else:  # of a node behind the route, too: the catalog does not say when it follows
                await asyncio.sleep(pause_s)


@dataclass(frozen=True, slots=True)
class CallBudget:
    """The statement id and deadline that all requests of one part of a statement share."""

    statement_id: str
    until: float
    """Seconds of the loop's clock."""
    sent_ms: int | None = None
    """The time at which a writing statement was made; None: its sender did not say."""
    max_lag_ms: int | None = None
    """The age that rows may have, so that a copy may answer; None: the leader answers."""

    @property
    def left_ms(self) -> int:
        return max(1, int((self.until - asyncio.get_running_loop().time()) * 1000))


@dataclass(frozen=True, slots=True)
class RegionPage:
    """A page of a scan in one region: rows by key, or by the entries of an index."""

    from_key: bytes
    to_key: bytes | None
    columns: tuple[int, ...]
    limit: int
    index_id: int | None = None
    """The index; None for the rows themselves."""
    bytes_max: int = ANSWER_BYTES_MAX
    values_only: bool = False

    def asked(self) -> dict[str, object]:
        body: dict[str, object] = {
            "from_key": self.from_key.hex(),
            "to_key": None if self.to_key is None else self.to_key.hex(),
            "columns": list(self.columns),
            "limit": self.limit,
            "bytes_max": self.bytes_max,
        }
        if self.index_id is not None:
            body["index"] = self.index_id
        if self.values_only:
            body["values_only"] = True
        return body


def shares_of(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Splits keys into shares, each for one read. Without keys there is one empty share."""
    first, taken_bytes = 0, 0
    for position, key in enumerate(keys):
        if position - first == KEYS_AT_ONCE or taken_bytes > KEYS_BYTES:
            yield keys[first:position]
            first, taken_bytes = position, 0
        taken_bytes += len(key)
    yield keys[first:]


def _header(schema: Schema, region: RegionRouteBody, call: CallBudget) -> dict[str, int]:
    """A `ReadHeader`. The region judges it: to make one here would judge it twice."""
    header = {
        "table_id": schema.layout.table_id,
        "schema_version": schema.version,
        "epoch": region.epoch,
    }
    return header if call.max_lag_ms is None else {**header, "max_lag_ms": call.max_lag_ms}


def _again(error: MetaError) -> bool:
    """Whether to try again, with the newest route. A schema version that has ended stays ended."""
    return may_send_again(error) and error.code != "schema-version-stale"
