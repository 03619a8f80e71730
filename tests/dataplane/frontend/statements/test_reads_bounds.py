"""Reads are bounded in bytes at every hop, and a statement asks a region few times."""

from collections import Counter

import httpx
import pytest

from dataplane.datanode.regions import rows as node_rows
from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements import entry_merge, regions, scans
from dataplane.frontend.statements.regions import shares_of
from dataplane.frontend.statements.scans import Place, RowScan
from dataplane.region.format.parts import PartSize
from tests.dataplane.frontend.bench import Bench, T, running
from tests.dataplane.frontend.tables import A, B, feed_table, index

ROW_BYTES = 1_000
PAGE_BYTES = 20_000


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds as they are, a thousandth of their size."""
    for module in (scans, entry_merge):
        monkeypatch.setattr(module, "PAGE_BYTES_MAX", PAGE_BYTES)
    monkeypatch.setattr(regions, "ANSWER_BYTES_MAX", PAGE_BYTES)
    monkeypatch.setattr(node_rows, "PIECE", PartSize(rows=1_000, bytes=ROW_BYTES))
    monkeypatch.setattr(node_rows, "GET_PART_BYTES", 4 * ROW_BYTES)
    monkeypatch.setattr(node_rows, "FIRST_KEYS", 4)


async def _filled(bench: Bench, count: int, row_bytes: int = ROW_BYTES) -> None:
    rows = [{"id": one, "a": one, "b": "x" * row_bytes} for one in range(count)]
    await bench.service.writes.rows(T, Op.INSERT, rows, "fill")


def _counted(bench: Bench) -> Counter[str]:
    count: Counter[str] = Counter()

    async def meet(request: httpx.Request) -> None:
        count[request.url.path.rpartition("/")[2]] += 1

    bench.way.meet = meet
    return count


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("flushed", [True, False])
async def test_given_wide_rows_when_scanned_then_every_page_is_bounded_and_all_come(
    flushed: bool,
) -> None:
    async with running(feed_table(A, B, regions=2)) as bench:
        await _filled(bench, 100)
        if flushed:
            for slot in bench.node:
                assert slot.owner is not None
                slot.owner.region.maintenance.flush()
        opened = await bench.service.scans.begin_rows(T, None)
        place: Place | None = Place()
        found: list[int] = []
        while place is not None:
            page, place = await bench.service.scans.page(opened, place, 2_000)
            assert page.rows.nbytes <= PAGE_BYTES + 3 * ROW_BYTES
            found += page.rows.column("id").to_pylist()

        assert sorted(found) == list(range(100))


@pytest.mark.usefixtures("_small")
async def test_given_a_bound_of_its_own_when_a_scan_is_read_then_each_page_keeps_to_it() -> None:
    async with running(feed_table(A, B)) as bench:
        await _filled(bench, 30)
        bound = 5 * ROW_BYTES
        opened = await bench.service.scans.begin(
            T, lambda schema: RowScan(schema, schema.layout.columns, page_bytes_max=bound)
        )
        place: Place | None = Place()
        pages = 0
        while place is not None:
            page, place = await bench.service.scans.page(opened, place, 2_000)
            assert page.rows.nbytes <= bound + 3 * ROW_BYTES
            pages += 1

        assert pages > 3


@pytest.mark.usefixtures("_small")
async def test_given_wide_rows_when_deleted_then_all_go_in_one_statement() -> None:
    """Deletes rows whose old versions together are larger than one answer of a region."""
    async with running(feed_table(A, B, index(1, 2), index(2, 3, unique=True))) as bench:
        for one in range(60):
            row = {"id": one, "a": one, "b": f"{one}" * ROW_BYTES}
            await bench.service.writes.rows(T, Op.INSERT, [row], f"fill-{one}")
        count = _counted(bench)

        rows = [{"id": one} for one in range(60)]
        done = await bench.service.writes.rows(T, Op.DELETE, rows, "delete")

        assert done.rows == 60
        assert count["get"] > 2, "answer after answer"
        opened = await bench.service.scans.begin_rows(T, None)
        page, _ = await bench.service.scans.page(opened, Place(), 10)
        assert page.rows.num_rows == 0


async def test_given_a_unique_index_when_many_rows_are_deleted_then_few_requests_are_made() -> None:
    async with running(feed_table(A, B, index(1, 2, unique=True))) as bench:
        await _filled(bench, 1_500, row_bytes=1)
        count = _counted(bench)

        rows = [{"id": one} for one in range(1_500)]
        done = await bench.service.writes.rows(T, Op.DELETE, rows, "delete")

        assert done.rows == 1_500
        assert count == {"get": 2, "batch": 1}


async def test_given_many_regions_when_rows_are_deleted_then_no_slot_of_a_scan_is_taken() -> None:
    table = feed_table(A, B, index(1, 1, 2, unique=True), regions=16)
    async with running(table) as bench:
        await _filled(bench, 200, row_bytes=1)
        count = _counted(bench)

        rows = [{"id": one} for one in range(200)]
        done = await bench.service.writes.rows(T, Op.DELETE, rows, "delete")

        assert done.rows == 200
        assert count == {"get": 32, "batch": 16}


def test_given_keys_when_shared_out_then_each_is_in_one_share_and_shares_are_bounded() -> None:
    keys = [b"%08d" % one + bytes(4_000) for one in range(1_000)]

    shares = list(shares_of(keys))

    assert [key for share in shares for key in share] == keys
    assert max(sum(map(len, share)) for share in shares) <= regions.KEYS_BYTES + 8_192
    assert [list(share) for share in shares_of([])] == [[]]
