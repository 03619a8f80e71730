"""Lists in pages of any size: together they say what one large page says."""

from typing import Any

import httpx

from tests.metasrv.api.rig import TABLES, Server, leader

COUNT, REGIONS = 5, 3
LISTS = (
    (TABLES, "tables"),
    (f"{TABLES}?include_dropped=true", "tables"),
    (f"{TABLES}?include_dropped=true&prefix=t1", "tables"),
    ("/v1/regions", "regions"),
    ("/v1/regions?node=dn-1", "regions"),
    ("/v1/regions?table=1024", "regions"),
)


async def _of_size(server: Server, path: str, size: int, what: str) -> list[Any]:
    """All pages of a list, one after the other."""
    found: list[Any] = []
    token = None
    while True:
        query = {"page_size": str(size), **({"page_token": token} if token else {})}
        page = (await server.client.get(httpx.URL(path).copy_merge_params(query))).json()
        assert len(page[what]) <= size
        found += page[what]
        token = page["next_page_token"]
        if token is None:
            return found


async def _tables(server: Server) -> None:
    for number in range(COUNT):
        partition = {"by": "hash", "columns": ["id"], "count": REGIONS}
        await server.make(f"t{number}", partition=partition)
    for name in ("t1", "t3"):
        await server.client.delete(f"{TABLES}/{name}", headers={"Prefer": "wait=10"})
    await server.make("t1")


async def test_given_a_list_when_read_in_pages_of_any_size_then_each_item_comes_once_in_order() -> (
    None
):
    async with leader() as server:
        await _tables(server)
        for path, what in LISTS:
            whole = await _of_size(server, path, 1_000, what)
            assert whole

            for size in (2, len(whole)):
                assert await _of_size(server, path, size, what) == whole


async def test_given_tables_and_dropped_ones_when_listed_then_all_are_there_by_name() -> None:
    async with leader() as server:
        await _tables(server)

        listed = await _of_size(server, f"{TABLES}?include_dropped=true", 3, "tables")
        regions = await _of_size(server, "/v1/regions", 4, "regions")
        metrics = (await server.client.get("/metrics")).text

    assert [one["name"] for one in listed] == ["t0", "t1", "t1", "t2", "t3", "t4"]
    assert [one["name"] for one in listed if one["dropped_at"]] == ["t1", "t3"]
    assert len(regions) == 3 * REGIONS + 1
    assert f'metasrv_regions{{state="open"}} {len(regions)}.0' in metrics
    assert 'metasrv_tables{state="dropped"} 2.0' in metrics


async def test_given_copies_of_many_tables_when_regions_of_a_node_are_paged_then_all_it_leads() -> (
    None
):
    async with leader() as server:
        for number in range(COUNT):
            await server.make(f"t{number}", replicas=2)
        partition = {"by": "hash", "columns": ["id"], "count": REGIONS}
        await server.make("last", replicas=2, partition=partition)
        led: dict[str, list[str]] = {}
        for region in await _of_size(server, "/v1/regions", 1_000, "regions"):
            led.setdefault(region["leader"], []).append(region["region_id"])
        assert len(led) == 2, "the second leads only regions of the last table"

        for node, regions in led.items():
            paged = await _of_size(server, f"/v1/regions?node={node}", 1, "regions")

            assert [region["region_id"] for region in paged] == regions
