"""Nodes as clients see them: what an answer costs does not grow with the regions of a node."""

from collections.abc import Iterator

from metasrv.service.cluster.nodes import REGIONS_TOLD_MAX
from metasrv_base.wire.node.nodes import RegionStat
from tests.metasrv.api.rig import Server, beat, leader, registration
from tests.metasrv.nodes.samples import stat

MANY = 2 * REGIONS_TOLD_MAX


class CountedRegions(dict[str, RegionStat]):
    """Reports of a node that count how many of them were looked at."""

    looked_at = 0

    def __iter__(self) -> Iterator[str]:
        for region in super().__iter__():
            self.looked_at += 1
            yield region

    def __getitem__(self, region: str) -> RegionStat:
        self.looked_at += 1
        return super().__getitem__(region)


def report(one: Server, count: int) -> CountedRegions:
    stats = [stat(str((2_000 + number) << 32)) for number in range(count)]
    stats[0] = stats[0].model_copy(update={"state": "opening"})
    one.term.nodes.heartbeat(beat("dn-1", 2, regions=stats))
    entry = one.term.nodes.entry("dn-1")
    counted = CountedRegions(entry.regions)
    entry.regions = counted
    return counted


async def test_given_many_regions_when_nodes_are_listed_then_none_is_looked_at() -> None:
    async with leader(nodes=2) as one:
        before = await one.client.get("/v1/nodes")
        counted = report(one, MANY)
        after = await one.client.get("/v1/nodes")

        assert counted.looked_at == 0
        assert after.json()["nodes"][0]["reported"] == {"open": MANY - 1, "opening": 1}
        assert len(after.content) < len(before.content) + 100


async def test_given_many_regions_when_one_node_is_asked_for_then_the_first_are_told() -> None:
    async with leader(nodes=1) as one:
        counted = report(one, MANY)
        shown = (await one.client.get("/v1/nodes/dn-1")).json()

        ids = [region["region_id"] for region in shown["regions"]]
        assert ids == sorted(counted)[:REGIONS_TOLD_MAX]
        assert sum(shown["reported"].values()) == MANY


async def test_given_a_returned_node_when_listed_then_its_folders_are_what_is_looked_up() -> None:
    async with leader(nodes=2) as one:
        await one.client.post("/v1/nodes/dn-2/decommission", json={"reason": "sold"})
        await one.make()
        ((region, root),) = [
            (region.region_id, region.root)
            for table in one.state.follower.catalog.tables.values()
            for region in table.route.region_routes
        ]
        folders = [root.rpartition("/")[2], f"{region}-9", "no-region", "x"]
        back = registration("dn-2", incarnation="i-2", folders=folders, folder_count=4)
        await one.term.nodes.register(back)

        shown = (await one.client.get("/v1/nodes/dn-2")).json()

        assert shown["quarantined"] == folders, "dn-1 leads the region under the same name"
