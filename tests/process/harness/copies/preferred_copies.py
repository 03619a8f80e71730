"""A table whose placement prefers a zone, while the node of that zone is killed and comes back, and
the preference changes, under writers."""

from functools import partial
from pathlib import Path

from metasrv.sdk.client import AsyncClient
from tests.process.harness.copies.equal_copies import unequal_copies
from tests.process.harness.node_outages import acknowledged_again, rows_of, writers_of, writing
from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import running, table_spec
from tests.process.harness.writer import wrong_rows

REGIONS = 4
PLACEMENT = "CREATE PLACEMENT near REPLICAS 3 PREFERRED ZONES ('z2', 'z1')"
ALTERED = "ALTER PLACEMENT near SET PREFERRED ZONES ('z3')"


async def leaders_in_zones(folder: Path) -> Seen:
    """Three nodes in three zones. All leaders are in the best zone from the first; in the next one
    when its node is dead; back when that has caught up; and in another one when the placement says
    so."""
    async with running(folder, datanodes=3, zones=3, flags={}) as rig, rig.client() as db:
        await db.sql(PLACEMENT)
        await db.tables.create({**table_spec("t", REGIONS), "placement": "near"})
        first = await leaders(db)
        writers = await writers_of(db, "t")
        times: dict[str, int] = {}
        async with writing(writers):
            await acknowledged_again(rig, writers)
            for name, zone in (("dead", "dn-1"), ("back", "dn-2"), ("altered", "dn-3")):
                began_ms = rig.clock.mono_ms()
                if name == "dead":
                    await rig.kill("dn-2")
                elif name == "back":
                    await rig.restart("dn-2")
                else:
                    await db.sql(ALTERED)
                await rig.until(partial(all_led_by, db, zone))
                times[name] = rig.clock.mono_ms() - began_ms
                await acknowledged_again(rig, writers)
        rows = await rows_of(db, "t")
        unequal = await unequal_copies(rig, db, "t")
        checked = await rig.check()
    numbers = {"ms": times, "rows": len(rows), "refused": [dict(w.codes) for w in writers]}
    kept = must(new_regions_are_led_in_the_best_zone=first == {"dn-2"})
    return Seen(numbers, (*kept, *wrong_rows(rows, writers), *unequal, *checked))


async def leaders(db: AsyncClient) -> set[str | None]:
    return {region.leader for region in (await db.tables.route("t")).regions}


async def all_led_by(db: AsyncClient, node: str) -> bool:
    regions = (await db.tables.route("t")).regions
    return all(region.leader == node and region.state == "open" for region in regions)
