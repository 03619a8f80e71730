"""GET /v1/nodes/{node}/orphans: folders of a node, compared with the catalog."""

from typing import Any

from metasrv.service.bodies.shapes import time_of
from metasrv.settings.tunables import DEFAULTS
from metasrv_base.wire.node.adoption import (
    QuarantinedRoot,
)
from tests.metasrv.api.listed_disk import root_of, with_disk
from tests.metasrv.api.rig import Server, leader

WAIT = {"Prefer": "wait=10"}
TABLE = "/v1/catalogs/main/schemas/public/tables/t"
GONE = 4096 << 32


async def orphans(one: Server, query: str = "") -> dict[str, Any]:
    answer = await one.client.get(f"/v1/nodes/dn-1/orphans{query}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def brief(body: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    return [(one["root"].rpartition("/")[2], one["proof"], one["wait"]) for one in body["folders"]]


async def test_given_folders_when_asked_for_then_each_without_a_claim_has_proof_or_waits() -> None:
    async with leader(nodes=1) as one:
        await one.make()
        table = one.state.follower.catalog.table("main", "public", "t")
        (region,) = table.route.region_routes
        disk, held = with_disk(one), region.region_id
        claimed = root_of(one, f"{held}-1").model_copy(update={"root": region.root})
        disk.roots = [
            claimed,
            root_of(one, f"{held}-0"),
            root_of(one, f"{held}-9"),
            root_of(one, f"{GONE}-1"),
            root_of(one, f"{GONE}-2", fenced_ms=one.clock.wall_ms()),
        ]
        disk.following = str(GONE + 1)

        body, first = await orphans(one, "?first=17"), disk.first
        await one.client.delete(TABLE, headers=WAIT)
        dropped = await orphans(one)

        assert (body["node_id"], body["next"], first) == ("dn-1", str(GONE + 1), 17)
        assert brief(body) == [
            (f"{held}-0", "other-root", None),
            (f"{held}-9", None, "catalog-older"),
            (f"{GONE}-1", "no-table", None),
            (f"{GONE}-2", None, "young"),
        ]
        assert brief(dropped) == brief(body)


async def test_given_a_table_that_is_made_while_folders_are_listed_then_it_is_no_orphan() -> None:
    """Its folder is listed before the catalog has it: the catalog is read afterwards."""
    async with leader(nodes=1) as one:
        disk = with_disk(one)
        await one.make("before")
        before = one.state.follower.catalog.table("main", "public", "before")
        (region,) = before.route.region_routes
        following = str(int(region.region_id) + (1 << 32))
        root = region.root.replace(region.region_id, following)
        disk.roots = [root_of(one, f"{following}-1").model_copy(update={"root": root})]
        unmade = brief(await orphans(one))

        async def make() -> None:
            await one.make()

        disk.listed = make
        made = brief(await orphans(one))

        assert unmade == [(f"{following}-1", "no-table", None)]
        assert made == []


async def test_given_folders_in_quarantine_when_asked_for_then_each_has_its_time_and_proof() -> (
    None
):
    async with leader(nodes=1) as one:
        await one.make()
        table = one.state.follower.catalog.table("main", "public", "t")
        (region,) = table.route.region_routes
        disk, now_ms = with_disk(one), one.clock.wall_ms()
        claimed = root_of(one, f"{region.region_id}-1").model_copy(update={"root": region.root})
        young = root_of(one, f"{GONE}-1", fenced_ms=now_ms)
        disk.quarantined = [
            QuarantinedRoot(folder=folder, path=f"/q/{number}", at_ms=now_ms, bytes=7)
            for number, folder in enumerate([claimed, young])
        ]

        first, second = (await orphans(one))["quarantined"]

        assert (first["root"], first["proof"], first["wait"]) == (region.root, None, "claimed")
        assert (second["path"], second["proof"], second["wait"]) == ("/q/1", "no-table", None)
        assert (second["region_id"], second["bytes"]) == (str(GONE), 7)
        assert second["quarantined_at"] == time_of(now_ms)
        assert second["deleted_after"] == time_of(now_ms + DEFAULTS.orphan_retention_ms)


async def test_given_a_node_that_is_silent_unknown_or_another_when_asked_then_it_says_so() -> None:
    async with leader(nodes=1) as one:
        disk = with_disk(one)
        unknown = await one.client.get("/v1/nodes/dn-7/orphans")
        malformed = await one.client.get("/v1/nodes/dn-1/orphans?first=x")
        disk.node_id = "dn-2"
        another = await one.client.get("/v1/nodes/dn-1/orphans")
        disk.is_silent = True
        silent = await one.client.get("/v1/nodes/dn-1/orphans")

        assert (unknown.status_code, unknown.json()["code"]) == (404, "not-found")
        assert (malformed.status_code, malformed.json()["code"]) == (422, "invalid-request")
        assert (another.status_code, another.json()["code"]) == (409, "wrong-cluster")
        assert silent.status_code == 503, silent.text
