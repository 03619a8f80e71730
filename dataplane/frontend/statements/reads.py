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
    rows: pa.RecordBatch
    schema_version: int
    next_page_token: str | None = None


@dataclass(frozen=True, slots=True)
class Reads:
    statements: Statements
    regions: RegionClient

    async def by_key(self, name: Name, key_of: Callable[[Layout], Sequence[Value]]) -> PageOf:
        return await self.by_keys(name, lambda layout: [key_of(layout)], keys=1)

    async def by_keys(self, name: Name, keys_of: Callable[[Layout], Keys], keys: int) -> PageOf:
        """The rows that are there, by region. *keys*: how many there are."""
        with self.statements.running() as transaction:

            async def read(schema: Schema) -> PageOf:
                short = is_small(keys, 0)
                by_number = await run_in_thread(short, _by_number, schema.layout, keys_of)
                call = self.statements.call(transaction)
                asked = [
                    partial(self.regions.rows, schema, number, list(keys), call)
                    for number, keys in sorted(by_number.items())
                ]
                found = await fan_out(asked, at_once=REGIONS_AT_ONCE)
                columns = schema.layout.columns
                return PageOf(columns, shown(columns, found), schema.version)

            schema = await self.statements.bound(transaction, name)
            return await self.statements.finished(transaction, schema, read)

    async def page(
        self, name: Name, make: Callable[[Schema], Scan], at: Place | None, limit: int
    ) -> PageOf:
        """One page as a transaction of its own. *at* is where it begins; None: at the first row."""
        with self.statements.running() as transaction:

            async def read(schema: Schema) -> PageOf:
                scan = make(schema)
                place = scan.start if at is None else at
                call = self.statements.call(transaction)
                found = await scan.page(self.regions, place, limit, call)
                token = None if found.following is None else token_apart(found.following)
                return PageOf(scan.columns, found.rows, schema.version, token)

            schema = await self.statements.bound(transaction, name)
            make(schema)
            return await self.statements.finished(transaction, schema, read, make)

    async def checksum(
        self, name: Name, region_of: Callable[[Layout], int | None]
    ) -> ChecksumAnswer:
        """Of the region that is named, or all."""
        with self.statements.running() as transaction:

            async def read(schema: Schema) -> ChecksumAnswer:
                region = region_of(schema.layout)
                numbers = range(schema.layout.router.regions) if region is None else (region,)
                call = self.statements.call(transaction)
                asked = [partial(self.regions.checksum, schema, number, call) for number in numbers]
                found = await fan_out(asked, at_once=REGIONS_AT_ONCE)
                total = sum(int(one.checksum, 16) for one in found) % (1 << 64)
                return ChecksumAnswer(
                    rows=sum(one.rows for one in found),
                    checksum=f"{total:016x}",
                    regions=tuple(RegionSum(**one.model_dump()) for one in found),
                    schema_version=schema.version,
                )

            schema = await self.statements.bound(transaction, name)
            return await self.statements.finished(transaction, schema, read)


def _by_number(layout: Layout, keys_of: Callable[[Layout], Keys]) -> dict[int, dict[bytes, None]]:
    """Encoded keys, each once, by the number of their region."""
    found: dict[int, dict[bytes, None]] = {}
    for values in keys_of(layout):
        found.setdefault(layout.number_of(values), {})[layout.key_bytes(values)] = None
    return found
