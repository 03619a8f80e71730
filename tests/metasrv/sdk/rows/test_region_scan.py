"""Whole regions read at a real node: bounded pages, routes that move, tables that change."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pyarrow as pa
import pytest

from metasrv.sdk.client import AsyncClient
from metasrv.sdk.rows.binding import AGE_MS_MAX
from metasrv.sdk.rows.region_scan import PAGE_BYTES, RegionScan
from metasrv.sdk.rows.table import AsyncTable
from metasrv_base.errors import Conflict, NotFound, Unavailable
from metasrv_base.rng import SystemRng
from metasrv_base.rows.nodes import NodePools
from tests.dataplane.frontend.bench import Bench, running
from tests.dataplane.frontend.tables import feed_table
from tests.fakes.chance import SeededRng
from tests.metasrv.sdk.catalog import URL
from tests.metasrv.sdk.scene import ONE, Frontends, body

ROWS: list[dict[str, Any]] = [{"id": id, "a": id, "b": f"w{id}"} for id in range(50)]
ELSEWHERE = "http://dn-2.test"


@dataclass
class Field:
    """A table of three regions with `ROWS`, and the way to its node."""

    bench: Bench
    catalog: Frontends
    client: AsyncClient
    asked: list[str] = field(default_factory=list)
    """URLs at the node, or where the route says that it is."""
    faults: list[Exception] = field(default_factory=list)
    """Met by the next requests, one each."""
    behind: bool = False
    """Whether copies answer that they lack the newest rows."""

    @property
    def table(self) -> AsyncTable:
        return self.client.table("t")

    async def rows(self, columns: Sequence[str] | None = None) -> list[dict[str, object]]:
        pages = self.table.scan_regions([0, 1, 2], columns)
        return [row async for page in pages for row in page.to_pylist()]

    async def meet(self, request: httpx.Request) -> None:
        self.asked.append(f"{request.url.scheme}://{request.url.netloc.decode()}")
        if self.behind and self.asked[-1] == ELSEWHERE:
            raise Unavailable("not-ready", what="a copy", max_lag_ms=5_000)
        if self.faults:
            raise self.faults.pop(0)

    def quick(self, page_s: float) -> RegionScan:
        """With less time for a page."""
        nodes = NodePools(self.bench.way)
        return RegionScan(self.table.binding, nodes, SeededRng(), page_s)


class WithNode(Frontends):
    """Frontends; requests that are for none of them go to the node of the bench."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/node/"):
            assert self.bench is not None
            return await self.bench.way.handle_async_request(request)
        return await super().handle_async_request(request)


@asynccontextmanager
async def given() -> AsyncIterator[Field]:
    async with running(feed_table(regions=3)) as bench:
        known = body(bench, indexes=[])
        address = bench.catalog.region(known.id, 0).address
        catalog = WithNode(bench=bench, table=known)
        for number in range(3):
            catalog.move(number, address=address)
        catalog.lead(ONE)
        async with AsyncClient([URL], transport=catalog, patience_ms=300) as client:
            client.clock = bench.clock
            found = Field(bench, catalog, client)
            await found.table.insert(ROWS)
            bench.way.meet = found.meet
            yield found


async def test_given_rows_when_regions_are_read_at_nodes_then_they_are_all_there_in_key_order() -> (
    None
):
    async with given() as scene:
        rows = await scene.rows()
        some = await scene.rows(["b", "id"])
        one = [page async for page in scene.table.scan_regions([1])]
        sent = list(scene.catalog.told)

    assert sorted(row["id"] for row in rows) == list(range(50))  # type: ignore[type-var]
    assert {tuple(row) for row in some} == {("b", "id")}
    ids = pa.Table.from_batches(one).column("id").to_pylist()
    assert ids == sorted(ids)
    assert len(sent) == 1, "the insert alone went through a frontend"


@pytest.mark.slow
async def test_given_rows_of_more_bytes_than_a_page_holds_then_all_come_in_several_pages() -> None:
    async with given() as scene:
        large = "x" * (PAGE_BYTES // 16)
        for id in range(40):
            await scene.table.upsert([{"id": id, "b": large}])
        scene.asked.clear()
        sizes = [page.nbytes async for page in scene.table.scan_regions([0, 1, 2], ["id", "b"])]
        ids = [row["id"] for row in await scene.rows(["id"])]

    assert sorted(ids) == list(range(50))  # type: ignore[type-var]
    assert sum(sizes) > 40 * len(large)
    assert max(sizes) < 1.2 * PAGE_BYTES


@pytest.mark.parametrize(
    "fault",
    [httpx.ConnectError("gone"), httpx.ReadTimeout("silent"), httpx.RemoteProtocolError("hung up")],
    ids=repr,
)
async def test_given_a_region_that_has_moved_then_it_is_read_where_the_newest_route_says(
    fault: Exception,
) -> None:
    async with given() as scene:
        await scene.table.schema()
        address = scene.bench.catalog.region(scene.bench.table.id, 0).address
        table = scene.table
        scene.catalog.move(0, address=ELSEWHERE)
        await table.schema()
        scene.catalog.move(0, address=address)
        scene.faults = [fault]
        pages = [page async for page in table.scan_regions([0])]

    assert scene.asked[0] == ELSEWHERE
    assert scene.asked[-1] == address
    assert sum(page.num_rows for page in pages) > 0


async def test_given_a_silent_node_until_the_deadline_then_it_is_not_there_and_never_perhaps() -> (
    None
):
    async with given() as scene:
        scene.faults = [httpx.ReadTimeout("silent")] * 500
        bound = await scene.table.binding.get()
        with pytest.raises(Unavailable):
            await anext(scene.quick(0.2).pages(bound, 0, bound.layout.columns))

    assert len(scene.asked) > 1


async def test_given_a_region_that_no_node_has_when_time_is_up_then_it_is_not_there_yet() -> None:
    async with given() as scene:
        bound = await scene.table.binding.get()
        scene.bench.way.meet = None
        await scene.bench.drop()
        with pytest.raises(Unavailable, match="not-ready"):
            await anext(scene.quick(0.2).pages(bound, 0, bound.layout.columns))


async def test_given_a_lost_region_then_it_is_said_at_once() -> None:
    async with given() as scene:
        scene.catalog.move(0, state="lost")
        with pytest.raises(Unavailable, match="region-lost"):
            await scene.rows()

    assert scene.asked == []


async def test_given_a_column_that_has_gone_since_then_rows_without_it_are_never_given() -> None:
    async with given() as scene:
        table = scene.table
        await table.schema()
        known = scene.catalog.table
        assert known is not None
        left = tuple(one for one in known.columns if one.name != "b")
        scene.catalog.change(columns=left, schema_version=2)
        scene.faults = [httpx.ConnectError("gone")]
        with pytest.raises(Conflict, match="schema-version-stale"):
            await anext(table.scan_regions([0], ["id", "b"]))


async def test_given_a_dropped_table_then_it_is_not_found() -> None:
    async with given() as scene:
        table = scene.table
        await table.schema()
        scene.catalog.change(dropped_at="2026-01-01T00:00:00Z")
        scene.faults = [httpx.ConnectError("gone")]
        with pytest.raises(NotFound, match="table-not-found"):
            await anext(table.scan_regions([0]))


COPY = {"dn-2": ELSEWHERE}


@pytest.mark.parametrize("max_lag", [None, 5_000])
async def test_given_an_age_when_regions_are_read_then_copies_are_asked_too_and_told_it(
    max_lag: int | None,
) -> None:
    async with given() as scene:
        for number in range(3):
            scene.catalog.move(number, copy_addresses=COPY)
        pages = [
            page
            for _ in range(8)
            async for page in scene.table.scan_regions([0, 1, 2], ["id"], max_lag)
        ]

    assert sum(page.num_rows for page in pages) == 8 * len(ROWS)
    assert (ELSEWHERE in scene.asked) is (max_lag is not None)
    assert set(scene.asked) > {ELSEWHERE} or max_lag is None, "and leaders among them"


def copies_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has copies drawn each time, and never their leader."""
    monkeypatch.setattr(SystemRng, "random", lambda _: 0.75)


async def test_given_a_copy_that_does_not_answer_when_regions_are_read_then_their_leaders_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies_are_drawn(monkeypatch)
    async with given() as scene:
        scene.catalog.move(0, copy_addresses=COPY)
        scene.faults.append(httpx.ConnectError("nobody listens there"))
        pages = [page async for page in scene.table.scan_regions([0], ["id"], 5_000)]

    assert sum(page.num_rows for page in pages) > 0
    assert scene.asked[0] == ELSEWHERE
    assert scene.asked[1] != ELSEWHERE


def in_small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metasrv.sdk.rows.region_scan.PAGE_ROWS", 2)


async def test_given_a_region_that_moves_in_a_long_read_then_its_old_node_is_asked_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_small_pages(monkeypatch)
    async with given() as scene:
        address = scene.bench.catalog.region(scene.bench.table.id, 0).address
        scene.catalog.move(0, address=ELSEWHERE)
        pages = scene.table.scan_regions([0], ["id"])
        rows = [await anext(pages)]
        scene.catalog.move(0, address=address)
        scene.faults = [httpx.ConnectError("it went")]
        scene.asked.clear()
        rows += [page async for page in pages]

    assert len(rows) > 3
    assert scene.asked.count(ELSEWHERE) == 1
    assert scene.asked[1:] == [address] * (len(scene.asked) - 1)


async def test_given_a_copy_that_left_in_a_long_read_then_it_is_asked_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_small_pages(monkeypatch)
    copies_are_drawn(monkeypatch)
    async with given() as scene:
        scene.catalog.move(0, copy_addresses=COPY)
        pages = scene.table.scan_regions([0], ["id"], 5_000)
        await anext(pages)
        scene.catalog.move(0, copy_addresses={})
        scene.faults = [httpx.ConnectError("it left")]
        scene.asked.clear()
        left = [page async for page in pages]

    assert len(left) > 3
    assert scene.asked.count(ELSEWHERE) == 1


async def test_given_a_reading_of_ten_minutes_in_a_long_read_then_the_route_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_small_pages(monkeypatch)
    copies_are_drawn(monkeypatch)
    async with given() as scene:
        pages = scene.table.scan_regions([0], ["id"], 5_000)
        await anext(pages)
        scene.catalog.move(0, copy_addresses=COPY)
        scene.bench.clock.advance(AGE_MS_MAX - 1)
        await anext(pages)
        before = list(scene.asked)
        scene.bench.clock.advance(1)
        readings = len(scene.catalog.asked)
        left = [page async for page in pages]

    assert len(left) > 2
    assert ELSEWHERE not in before
    assert ELSEWHERE in scene.asked
    assert len(scene.catalog.asked) == readings + 1


async def test_given_metasrv_is_away_for_ten_minutes_in_a_long_read_then_the_read_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_small_pages(monkeypatch)
    async with given() as scene:
        pages = scene.table.scan_regions([0], ["id"])
        await anext(pages)
        scene.bench.clock.advance(AGE_MS_MAX)
        scene.catalog.script = [Unavailable("not-ready", what="metasrv")] * 1_000
        await anext(pages)


async def test_given_another_table_of_the_name_when_read_again_then_it_is_never_taken_for_it() -> (
    None
):
    async with given() as scene:
        binding = scene.table.binding
        dropped = await binding.get()
        binding.forget()  # as a statement does that was told of the drop
        scene.catalog.change(id=dropped.body.id + 1)
        other = await binding.get()
        for read in (binding.read_again, binding.newest):
            binding.doubt(dropped)
            with pytest.raises(NotFound, match="table-not-found"):
                await read(dropped)
        still = await binding.get()

    assert still.body.id == other.body.id != dropped.body.id


async def test_given_a_copy_too_far_behind_in_a_long_read_then_its_route_is_not_doubted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_small_pages(monkeypatch)
    copies_are_drawn(monkeypatch)
    async with given() as scene:
        scene.catalog.move(0, copy_addresses=COPY)
        pages = scene.table.scan_regions([0], ["id"], 5_000)
        await anext(pages)
        readings = len(scene.catalog.asked)
        scene.behind = True
        left = [page async for page in pages]

    assert len(left) > 3
    assert len(scene.catalog.asked) == readings
