"""The second act: many tables in one version, a bad migration taken back, a log that is followed.

A follower of the catalog's events listens from the first command on; the leader is killed while it
does. What it heard is compared with the history that the service tells at the end.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from metasrv.demo.page import DemoFailed, DemoPage
from metasrv.playground.playground import Playground
from metasrv.sdk.client import AsyncClient
from metasrv_base.clock import Clock

CATALOG, SCHEMA = "main", "shop"
TABLES = ("customers", "orders", "items", "payments", "returns")
MIGRATED = f"{SCHEMA}.orders"
MIGRATION = (
    {"op": "rename_column", "name": "total", "new_name": "totl"},
    {"op": "drop_column", "name": "note"},
    {"op": "set_options", "options": {"comment": "migrated"}},
)
LOOK_MS = 200
HEARD_S_MAX = 60.0


@dataclass(slots=True)
class CatalogVersions:
    """Raises DemoFailed if a promise is not kept."""

    page: DemoPage
    cluster: Playground
    client: AsyncClient
    clock: Clock
    _heard: list[tuple[int, str]] = field(default_factory=list)
    """Version and type of each event, as they came."""

    async def tell(self) -> None:
        self.page.chapter(
            "A batch in one version, a migration taken back, events across a leader's death"
        )
        began = self.clock.mono_ms()
        async with self.client.events(schema=f"{CATALOG}.{SCHEMA}") as events:
            first = events.version or 0
            async with asyncio.TaskGroup() as tasks:
                listening = tasks.create_task(self._listen(events))
                await self._batch()
                await self._migration()
                await self._leader_killed()
                last = await self._version()
                await self._all_heard(first, last)
                listening.cancel()
        took = (self.clock.mono_ms() - began) / 1000
        self.page.figure("batch, migration, restore, leader killed", f"{took:.1f} s")

    async def _listen(self, events: Any) -> None:
        async for event in events:
            self._heard.append((event.version, event.type))

    async def _batch(self) -> None:
        commands: Sequence[dict[str, Any]] = [
            {"create_schema": {"catalog": CATALOG, "schema": {"name": SCHEMA}}},
            *(
                {"create_table": {"catalog": CATALOG, "schema": SCHEMA, "table": _spec(name)}}
                for name in TABLES
            ),
        ]
        before = self.clock.mono_ms()
        body = await self.client.batches.run(commands)
        took = self.clock.mono_ms() - before
        self.page.must(
            all(body.applied) and body.catalog_version is not None,
            f"a schema and {len(TABLES)} tables are version {body.catalog_version}  "
            f"[dim]{took} ms[/dim]",
        )

    async def _migration(self) -> None:
        before = await self._version()
        with self.page.step(f"a migration of {MIGRATED} that nobody should have begun"):
            await self.client.tables.alter(MIGRATED, MIGRATION)
        for line in (await self.client.tables.diff(MIGRATED, before)).text:
            self.page.say(f"  [dim]diff[/dim] {line}")
        restored = await self.client.tables.restore(MIGRATED, before)
        for line in restored.not_restored or ():
            self.page.say(f"  [dim]not restored[/dim] {line}")
        left = await self.client.tables.diff(MIGRATED, before)
        self.page.must(
            {column.name for column in restored.columns} == {"id", "total", "note"},
            f"{MIGRATED} has the definition of version {before} again",
        )
        for line in left.text:
            self.page.say(f"  [dim]diff[/dim] {line}")

    async def _leader_killed(self) -> None:
        leader = (await self.client.cluster.get()).leader
        if leader is None:
            raise DemoFailed("nobody leads")
        await self.cluster.kill(leader.id)
        self.page.say(f"[red]kill -9[/red] {leader.id}, the leader; the follower goes on")
        await self.client.tables.create(_spec("late"), SCHEMA)
        await self.cluster.restart(leader.id)

    async def _all_heard(self, first: int, last: int) -> None:
        """Compares what was heard with the history between two versions."""
        until = self.clock.mono_ms() + int(HEARD_S_MAX * 1000)
        expected: list[tuple[int, str]] = []
        async with self.client.events(
            since=first, until=last, schema=f"{CATALOG}.{SCHEMA}"
        ) as again:
            expected = [(event.version, event.type) async for event in again]
        while len(self._heard) < len(expected) and self.clock.mono_ms() < until:
            await self.clock.sleep_ms(LOOK_MS)
        self.page.must(
            self._heard == expected and len(expected) > len(TABLES),
            f"the follower heard all {len(expected)} events, each once, in order",
        )

    async def _version(self) -> int:
        return (await self.client.cluster.get()).catalog_version


def _spec(name: str) -> dict[str, Any]:
    columns = [
        {"name": "id", "type": "int64", "nullable": False},
        {"name": "total", "type": "float64"},
        {"name": "note", "type": "string"},
    ]
    partition = {"by": "hash", "columns": ["id"], "count": 1}
    return {"name": name, "columns": columns, "primary_key": ["id"], "partition": partition}
