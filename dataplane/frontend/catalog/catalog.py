"""The catalog as this process has it now, and who waits for a newer one."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from dataplane.frontend.catalog.schema import Schema
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import NotFound, Unavailable
from metasrv_base.feed.catalog_replica import CatalogReplica, FeedReader
from metasrv_base.wire.api.tables import RegionRouteBody
from metasrv_base.wire.frontend.feed import FeedTable, HeardLine, ParsedPart, SnapshotLine, Update

Name = tuple[str, str, str] | int
"""Catalog, schema, table; or the id of the table."""
CATCH_UP_S_MAX = 2.0
"""A healthy frontend is behind for milliseconds; a client of one that is not goes to another."""


class CopyNode(NamedTuple):
    """A node that has a copy of a region in sync."""

    node: str
    address: str
    zone: str | None
    """The zone of the node; None: not known."""
    is_leader: bool


class LiveCatalog:
    """Moved forward by the lines of the feed, one task's; read by everybody else."""

    def __init__(
        self,
        on_change: Callable[[], None] = lambda: None,
        on_part: Callable[[], None] = lambda: None,
    ) -> None:
        self._reading = FeedReader()
        self._on_change = on_change
        """Called when tables have changed: a change may be waiting for an acknowledgement."""
        self._on_part = on_part
        """Called when a part of a snapshot was read, which stays in memory and may be large."""
        self.snapshots = 0
        """Read to their ends."""
        self._moved = asyncio.Event()
        self._schemas: dict[int, tuple[FeedTable, Schema]] = {}

    @property
    def version(self) -> int | None:
        """The version that was read; None if nothing was read yet."""
        mirror = self._reading.mirror
        return None if mirror is None else mirror.version

    @property
    def mirror(self) -> CatalogReplica:
        """Raises Unavailable before the first snapshot is whole."""
        if self._reading.mirror is None:
            raise Unavailable("not-ready", what="the catalog of this frontend")
        return self._reading.mirror

    def take(self, line: HeardLine) -> None:
        """Raises Corrupt for a line that cannot follow."""
        before = self._reading.mirror
        self._reading = self._reading.heard(line)
        if isinstance(line, SnapshotLine | ParsedPart):
            self._on_part()
            self.snapshots += line.is_last
            self._schemas.clear()
        for table_id in line.gone if isinstance(line, Update) else ():
            self._schemas.pop(table_id, None)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        changes = isinstance(line, Update) and before and before.is_waited_for(line)
        if changes or isinstance(line, SnapshotLine | ParsedPart):
            self._on_change()

    def stream_ended(self) -> None:
        self._reading = self._reading.ended()

    def named(self, name: Name) -> Schema:
        """The schema of the newest version, by name. Raises NotFound `table-not-found`."""
        return self.schema(name) if isinstance(name, int) else self.find(*name)

    def find(self, catalog: str, schema: str, name: str) -> Schema:
        """Raises NotFound `table-not-found`."""
        table = self.mirror.find(catalog, schema, name)
        if table is None:
            raise NotFound("table-not-found", name=f"{catalog}.{schema}.{name}")
        return self._schema(table)

    def schema(self, table_id: int) -> Schema:
        """The schema of the newest version. Raises NotFound, also for a table that is being
        dropped."""
        table = self._table(table_id)
        if table.state is not ElementState.PUBLIC:
            raise NotFound("table-not-found", table_id=table_id)
        return self._schema(table)

    def latest(self, schema: Schema) -> Schema:
        """The newest version; of a table that is being dropped, *schema*. Raises NotFound."""
        table = self._table(schema.layout.table_id)
        return self._schema(table) if table.state is ElementState.PUBLIC else schema

    def region(self, table_id: int, number: int) -> RegionRouteBody:
        """The place of a region, as far as this process knows. Raises NotFound for a table that is
        gone."""
        regions = self._table(table_id).regions
        if number >= len(regions):
            raise NotFound(what="region", name=f"{table_id} {number}")
        region = regions[number]
        return RegionRouteBody(
            region_id=region.region_id,
            number=number,
            leader=region.leader,
            epoch=region.epoch,
            state=region.state,
            address=self.mirror.address_of(region.leader),
        )

    def copies(self, table_id: int, number: int) -> list[CopyNode]:
        """The copies of a region in sync whose nodes are registered, the leader's first. Raises as
        `region`."""
        leader = self.region(table_id, number).leader
        mirror, region = self.mirror, self._table(table_id).regions[number]
        nodes = [*([] if leader is None else [leader]), *region.copies]
        return [
            CopyNode(node, mirror.addresses[node], mirror.zones.get(node), node == leader)
            for node in nodes
            if node in mirror.addresses
        ]

    async def until_led_at(self, table_id: int, number: int, epoch: int, wait_s: float) -> None:
        """Returns once a region is known to be led at that epoch, or a higher one, and after
        *wait_s* in any case. Raises as `region`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while self.region(table_id, number).epoch < epoch:
                    await self._moved.wait()

    async def newer(self, older: Schema) -> Schema:
        """The table at a version above that of *older*, once there is one. Raises NotFound where
        none will be."""
        while (schema := self.schema(older.layout.table_id)).version <= older.version:
            await self._moved.wait()
        return schema

    async def catch_up(self, name: Name, schema_version: int) -> None:
        """Returns once the table is known at *schema_version*, or at none any more: what a client
        has seen of a table at one frontend is there at every other (P7). Raises Unavailable after
        CATCH_UP_S_MAX."""
        try:
            schema = self.named(name)
            async with asyncio.timeout(CATCH_UP_S_MAX):
                while schema.version < schema_version:
                    schema = await self.newer(schema)
        except NotFound:
            return
        except TimeoutError as error:
            facts = {"what": "the catalog of this frontend", "version": schema.version}
            raise Unavailable("not-ready", wanted=schema_version, **facts) from error

    async def reached(self, version: int) -> None:
        """Waits until *version* is applied."""
        while self.version is None or self.version < version:
            await self._moved.wait()

    def _table(self, table_id: int) -> FeedTable:
        table = self.mirror.tables.get(table_id)
        if table is None:
            raise NotFound("table-not-found", table_id=table_id)
        return table

    def _schema(self, table: FeedTable) -> Schema:
        """The schema of a table, made once for each version."""
        cached = self._schemas.get(table.id)
        if cached is None or cached[0] is not table:
            cached = self._schemas[table.id] = (table, Schema.of(table))
        return cached[1]
