"""Pages of a region: what they cost, and what they hold while the region changes between them."""

from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files import file_reader, file_writer
from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.key_range import KeyRange, key_after
from dataplane.region.format.parts import PartSize
from dataplane.region.format.schema import RegionSchema
from dataplane.region.reads import lookup
from tests.dataplane.region.rig import SPEC, Row, place, write

SEATS = ColumnDef(id=7, type="int32", nullable=False, origin_default=100)
KEYS = st.integers(0, 40).map(lambda number: f"k{number:02}".encode())
ROWS = st.one_of(st.none(), st.tuples(st.integers(-5, 5), st.none()))
Change = tuple[str, dict[bytes, Row | None]]
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.tuples(st.just("write"), st.dictionaries(KEYS, ROWS, min_size=1, max_size=20)),
    st.tuples(st.sampled_from(["flush", "merge", "alter", "nothing"]), st.just({})),
)


class ReadingDisk(MemoryDisk):
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.bytes_read = 0

    def read(self, path: str, offset: int, length: int) -> bytes:
        data = super().read(path, offset, length)
        self.bytes_read += len(data)
        return data


@dataclass
class World:
    """A region, and what it must hold."""

    region: Region
    model: dict[bytes, Row] = field(default_factory=dict)
    statements: int = 0

    def act(self, action: str, rows: dict[bytes, Row | None]) -> None:
        match action:
            case "write":
                self.statements += 1
                self._write(rows)
            case "flush":
                self.region.maintenance.flush()
            case "merge":
                self.region.maintenance.compact()
            case "alter":
                self.region.set_schema(RegionSchema(2, 0, (*SPEC.columns, SEATS)))

    def _write(self, rows: dict[bytes, Row | None]) -> None:
        write(self.region, f"s-{self.statements}", rows)
        for key, row in rows.items():
            self.model.pop(key, None)
            if row is not None:
                self.model[key] = row

    def check_page(self, start: bytes, limit: int) -> list[bytes]:
        """Returns its keys: the first that are there at this moment."""
        pages = list(self.region.reader.scan(KeyRange(start), None, limit))
        found = {key: c1 for page in pages for key, c1 in zip(*_pairs(page), strict=True)}
        wanted = sorted(key for key in self.model if key >= start)[:limit]
        assert found == {key: self.model[key][0] for key in wanted}
        assert [key for page in pages for key in _pairs(page)[0]] == wanted
        for page in pages:
            if "c7" in page.schema.names:
                assert set(page.column("c7").to_pylist()) == {100}
        return wanted


def _pairs(page: pa.RecordBatch) -> tuple[list[bytes], list[int]]:
    return page.column("_key").to_pylist(), page.column("c1").to_pylist()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that a read takes together is a few rows: their bounds are everywhere."""
    monkeypatch.setattr(file_writer, "ROW_GROUP", PartSize(rows=3, bytes=1 << 20))
    monkeypatch.setattr(file_reader, "_GROUPS_AT_ONCE", 2)
    monkeypatch.setattr(lookup, "_ROWS_AT_ONCE_MIN", 2)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
@settings(max_examples=80)
@given(st.lists(CHANGES, max_size=8), st.lists(CHANGES, max_size=12), st.integers(1, 9))
def test_given_changes_between_pages_when_scanned_then_each_page_is_of_its_moment(
    before: list[Change], between: list[Change], limit: int
) -> None:
    world = World(Region.create(place(MemoryDisk(MemoryStore())), SPEC, epoch=1))
    for change in before:
        world.act(*change)
    start, keys = b"", list[bytes]()

    for change in [*between, *[("nothing", {})] * 40]:
        page = world.check_page(start, limit)
        keys += page
        if len(page) < limit:
            break
        start = key_after(page[-1])
        world.act(*change)

    assert all(low < high for low, high in pairwise(keys)), "each key once, in order"


def test_given_a_region_that_grows_when_a_page_is_read_then_it_costs_the_same() -> None:
    disk = ReadingDisk()
    region, rows, limit, costs = Region.create(place(disk), SPEC, epoch=1), 30_000, 1_000, []

    for size in (1, 2, 4):
        for first in range((size // 2) * rows, size * rows, rows):
            numbers = range(first, first + rows)
            write(region, f"s-{first}", {b"k%08d" % at: (at, f"tag {at}") for at in numbers})
        region.maintenance.flush()
        while region.maintenance.compact():
            pass
        list(region.reader.scan(KeyRange(b"k%08d" % 5_000), None, limit))  # footers
        disk.bytes_read = 0
        page = pa.Table.from_batches(region.reader.scan(KeyRange(b"k%08d" % 5_000), None, limit))
        assert page.num_rows == limit
        costs.append(disk.bytes_read)

    assert max(costs) < 1.5 * min(costs)
    assert max(costs) < 8 * page.nbytes, "little more is read than is answered"
