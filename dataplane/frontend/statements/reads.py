"""Statements that read once: rows by key, a page by itself, a checksum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from dataplane.frontend.catalog.catalog import Name
from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.statements.regions import RegionClient
from dataplane.frontend.statements.scans import REGIONS_AT_ONCE, Place, Scan, shown, token_apart
from dataplane.frontend.statements.statements import Statements
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.concurrency.run_in_thread import is_small, run_in_thread
from metasrv_base.rows.layout import Layout, LayoutColumn
from metasrv_base.schema.values import Value
from metasrv_base.wire.frontend.rows import ChecksumAnswer, RegionSum

Keys = Sequence[Sequence[Value]]


@dataclass(frozen=True, slots=True)
class PageOf:
    """An answer to a read."""

    columns: Sequence[LayoutColumn]
    rows: pa.RecordBatch | pa.Table
    """A table: in the parts in which a stream sends it."""
    schema_version: int
    next_page_token: str | None = None


@dataclass(frozen=True, slots=True)
class Reads:
    statements: Statements
    regions: RegionClient

    async def by_key(
        self,
        name: Name,
        key_of: Callable[[Layout], Sequence[Value]],
        max_lag_ms: int | None = None,
    ) -> PageOf:
        return await self.by_keys(name, lambda layout: [key_of(layout)], 1, max_lag_ms)

    async def by_keys(
        self,
        name: Name,
        keys_of: Callable[[Layout], Keys],
        keys: int,
        max_lag_ms: int | None = None,
    ) -> PageOf:
        """The rows that are there, by region. *keys*: how many there are. *max_lag_ms*: the age
        that rows may have; None: leaders answer."""
        with self.statements.running(max_lag_ms) as transaction:

            async def read(schema: Schema) -> PageOf:
                short = is_small(keys, 0)
                by_number = await run_in_thread(short, _by_number, schema.layout, keys_of)
                call = self.statements.call(transaction)
                calls = [
                    partial(self.regions.rows, schema, number, list(keys), call)
                    for number, keys in sorted(by_number.items())
                ]
                tables = await fan_out(calls, at_once=REGIONS_AT_ONCE)
                columns = schema.layout.columns
                return PageOf(columns, shown(columns, tables), schema.version)

            schema = await self.statements.bound(transaction, name)
            return await self.statements.finished(transaction, schema, read)

    async def page(
        self,
        name: Name,
        make: Callable[[Schema], Scan],
        start: Place | None,
        limit: int,
        max_lag_ms: int | None = None,
    ) -> PageOf:
        """One page as a transaction of its own. *start*: where it begins; None: the first row.
        *max_lag_ms*: as of `by_keys`."""
        with self.statements.running(max_lag_ms) as transaction:

            async def read(schema: Schema) -> PageOf:
                scan = make(schema)
                cursor = scan.start if start is None else start
                call = self.statements.call(transaction)
                page = await scan.page(self.regions, cursor, limit, call)
                token = None if page.following is None else token_apart(page.following)
                return PageOf(scan.columns, page.rows, schema.version, token)

            schema = await self.statements.bound(transaction, name)
            make(schema)
            return await self.statements.finished(transaction, schema, read, make)

    async def checksum(
        self, name: Name, region_of: Callable[[Layout], int | None]
    ) -> ChecksumAnswer:
        """Returns the checksum of one region, or of all."""
        with self.statements.running() as transaction:

            async def read(schema: Schema) -> ChecksumAnswer:
                region = region_of(schema.layout)
                numbers = range(schema.layout.router.regions) if region is None else (region,)
                call = self.statements.call(transaction)
                calls = [partial(self.regions.checksum, schema, number, call) for number in numbers]
                sums = await fan_out(calls, at_once=REGIONS_AT_ONCE)
                total = sum(int(region_sum.checksum, 16) for region_sum in sums) % (1 << 64)
                return ChecksumAnswer(
                    rows=sum(region_sum.rows for region_sum in sums),
                    checksum=f"{total:016x}",
                    regions=tuple(RegionSum(**region_sum.model_dump()) for region_sum in sums),
                    schema_version=schema.version,
                )

            schema = await self.statements.bound(transaction, name)
            return await self.statements.finished(transaction, schema, read)


def _by_number(layout: Layout, keys_of: Callable[[Layout], Keys]) -> dict[int, dict[bytes, None]]:
    """Encoded keys, each once, by the number of their region."""
    keys: dict[int, dict[bytes, None]] = {}
    for values in keys_of(layout):
        keys.setdefault(layout.number_of(values), {})[layout.key_bytes(values)] = None
    return keys
