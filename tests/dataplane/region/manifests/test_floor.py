"""Floors: from its point on no older batch is ordered and no older read computed (P6)."""

from collections.abc import Callable
from random import Random
from threading import Thread

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.families import ROWS
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.schema import RegionSchema, joined
from dataplane.region.place import OpenOrder
from metasrv_base.errors import Conflict, MetaError, Unavailable
from tests.dataplane.region.manifests.floors import MARK, NEWS, code_at, new_region
from tests.dataplane.region.rig import (
    REGION_ID,
    SPEC,
    A,
    B,
    batch,
    contents,
    header,
    order,
    place,
    version_of,
    write,
)


def is_refused(read: Callable[[], object]) -> bool:
    try:
        read()
    except Conflict as error:
        return error.code == "schema-version-stale"
    return False


@pytest.mark.case("online 4")
def test_given_a_floor_when_older_batches_and_reads_come_then_they_are_refused() -> None:
    region = new_region()
    assert code_at(region, 1, "before") == "done"

    region.set_schema(NEWS)

    assert code_at(region, 1, "old") == "schema-version-stale"
    assert code_at(region, 2, "new") == "done"
    assert is_refused(lambda: region.reader.get([b"a"], None, 1))
    assert is_refused(lambda: list(region.reader.scan(schema_version=1)))
    assert is_refused(lambda: region.reader.digest(1))
    assert region.reader.get([b"a"], None, 2).num_rows == 1
    assert region.reader.digest(2) == region.reader.digest()
    assert contents(region).keys() == {b"a", b"b", b"before", b"new"}


def test_given_a_column_that_is_gone_when_the_version_before_writes_it_then_it_is_stale() -> None:
    """A region that fails over behind a column's last transition has the columns of after it."""
    region = new_region()

    region.set_schema(RegionSchema(version=2, floor=1, columns=SPEC.columns[:1]))

    assert code_at(region, 1, "before") == "schema-version-stale"
    assert code_at(region, 2, "wrong") == "invalid-request"


def test_given_a_mark_of_an_empty_region_when_ordered_again_behind_rows_then_it_stands() -> None:
    region = Region.create(place(), SPEC, epoch=1)
    first = region.set_schema(NEWS, MARK)
    assert code_at(region, 2, "s-1") == "done"

    again = region.set_schema(NEWS, MARK)

    assert first == again == 0


def test_given_a_statement_of_before_the_floor_when_repeated_then_its_first_answer_comes() -> None:
    region = new_region()
    region.set_schema(NEWS)

    assert write(region, "s-2", {b"b": (2, "y")}).repeated


def test_given_a_floor_when_opened_again_or_elsewhere_then_it_stands() -> None:
    disk = MemoryDisk(MemoryStore())
    new_region(disk).set_schema(NEWS)
    disk.store.crash()

    again = Region.open(place(disk), order(2))
    elsewhere = Region.open(place(disk, B), order(3, A))

    assert (again.schema_floor, elsewhere.schema_floor) == (2, 2)
    assert again.schema.version == 2
    assert code_at(elsewhere, 1, "old") == "schema-version-stale"


def test_given_an_order_to_open_when_its_floor_is_higher_then_it_holds_from_the_opening() -> None:
    disk = MemoryDisk(MemoryStore())
    new_region(disk)

    region = Region.open(place(disk, B), OpenOrder(REGION_ID, 2, (A,), None, 7, 5))

    assert (region.schema.version, region.schema_floor) == (7, 5)
    assert region.set_schema(NEWS) == version_of(region, b"b")
    assert region.schema_floor == 5, "and it never falls"


def test_given_a_floor_when_told_again_then_it_is_where_it_was() -> None:
    region = new_region()
    held = region.set_schema(NEWS)
    number = region.manifest.number
    code_at(region, 2, "later")

    assert region.set_schema(NEWS) == held == version_of(region, b"b")
    assert region.manifest.number == number, "nothing was written"


def test_given_a_floor_when_an_older_schema_is_told_late_then_nothing_falls() -> None:
    region = new_region()
    more = (*SPEC.columns, ColumnDef(id=7, type="float64", nullable=True))
    region.set_schema(RegionSchema(3, 3, more, frozenset({4}), frozenset({1})))

    region.set_schema(RegionSchema(2, 1, SPEC.columns, frozenset({1, 2}), frozenset()))

    assert region.schema == RegionSchema(3, 3, more, frozenset({2, 4}), frozenset({1}))


def test_given_a_mark_with_a_floor_then_it_divides_the_rows_of_before_from_those_behind() -> None:
    region = new_region()

    held = region.set_schema(NEWS, MARK)

    assert held == version_of(region, b"b")
    code_at(region, 2, "behind")
    assert version_of(region, b"behind") > held
    assert region.set_schema(NEWS, MARK) == held, "the mark stands"
    region.close_mark(MARK)
    assert region.set_schema(NEWS, "another") == version_of(region, b"behind")


def test_given_a_marked_floor_when_rows_change_and_merge_then_those_of_before_are_kept() -> None:
    region = new_region()
    held = region.set_schema(NEWS, MARK)

    for number in range(4):
        head = header(f"t-{number}", 1, 2)
        region.writer.apply([(head, batch({b"a": (10 + number, None), b"b": None}))])
        region.maintenance.flush()
    region.maintenance.compact()

    kept = [
        (key, version)
        for reader in region._content._files.take(ROWS)
        for table in reader.scan(KeyRange(), ())
        for key, version in zip(
            table.column("_key").to_pylist(), table.column("_version").to_pylist(), strict=True
        )
    ]
    assert {key for key, version in kept if version <= held} == {b"a", b"b"}
    assert sum(key == b"b" and version > held for key, version in kept) == 4, "every tombstone"


def test_given_a_scan_when_the_floor_comes_then_it_is_of_before_if_begun_and_else_refused() -> None:
    region = new_region()
    begun, made = region.reader.scan(schema_version=1), region.reader.scan(schema_version=1)
    first = next(begun)

    region.set_schema(NEWS)
    code_at(region, 2, "c")

    keys = [key for part in (first, *begun) for key in part.column("_key").to_pylist()]
    assert keys == [b"a", b"b"]
    assert is_refused(lambda: next(made))


def test_given_a_read_by_key_when_the_floor_comes_before_it_is_computed_then_it_is_refused() -> (
    None
):
    raise_it: list[Callable[[], int]] = []

    def on_read(operation: str, path: str) -> None:
        if operation == "read" and "data/" in path and raise_it:
            raise_it.pop()()

    region = new_region(MemoryDisk(MemoryStore(), on_read))
    raise_it.append(lambda: region.set_schema(NEWS))

    assert is_refused(lambda: region.reader.get([b"a"], None, 1))
    assert not raise_it


def test_given_a_batch_that_comes_while_the_floor_is_written_then_it_is_ordered_behind_it() -> None:
    answers: list[str] = []
    writers: list[Thread] = []
    patience_s = 0.2  # a writer that must wait is given so long to show that it does not

    def on_create(operation: str, path: str) -> None:
        if operation == "create" and "manifest-" in path and armed:
            writers.append(Thread(target=lambda: answers.append(code_at(region, 1, "old"))))
            armed.clear()
            writers[0].start()
            writers[0].join(patience_s)

    armed: list[bool] = []
    region = new_region(MemoryDisk(MemoryStore(), on_create))
    armed.append(True)

    held = region.set_schema(NEWS)
    writers[0].join()

    assert answers == ["schema-version-stale"]
    assert held == region.stats().version


def test_given_a_column_that_comes_with_a_schema_when_written_then_no_row_is_lost() -> None:
    region = new_region()
    more = (*SPEC.columns, ColumnDef(id=7, type="float64", nullable=True))
    begun = region.reader.scan()

    region.set_schema(RegionSchema(2, 1, more))

    rows = batch({b"c": (3, None)}).append_column("c7", pa.array([1.5], pa.float64()))
    region.writer.apply([(header("s-3", 1, 2), rows)])
    assert next(begun).schema.names[-1] == "c7", "it takes its columns when it begins"
    for _ in range(2):
        found = region.reader.get([b"a", b"b", b"c"])
        assert found.column("c7").to_pylist() == [None, None, 1.5]
        scanned = pa.Table.from_batches(region.reader.scan())
        assert scanned.column("c7").to_pylist() == [None, None, 1.5]
        region.maintenance.flush()


def test_given_a_full_disk_when_a_floor_is_raised_then_it_is_not_and_the_region_goes_on() -> None:
    full = [False]

    def on_create(operation: str, path: str) -> None:
        if full[0] and operation == "create":
            raise Unavailable("storage-full", path=path)

    region = new_region(MemoryDisk(MemoryStore(), on_create))
    full[0] = True

    with pytest.raises(MetaError) as refusal:
        region.set_schema(NEWS, MARK)

    assert refusal.value.code == "storage-full"
    assert (region.schema_floor, region.manifest.marks) == (0, ())
    full[0] = False
    assert region.set_schema(NEWS, MARK) == version_of(region, b"b")


SCHEMAS = st.builds(
    RegionSchema,
    version=st.integers(0, 9),
    floor=st.integers(0, 9),
    columns=st.none(),
    indexes=st.frozensets(st.integers(1, 4)),
    dead=st.frozensets(st.integers(1, 4)),
)


@given(st.lists(SCHEMAS, max_size=5), st.randoms(use_true_random=False))
def test_given_schemas_when_told_in_any_order_and_often_then_the_end_is_the_same(
    told: list[RegionSchema], chance: Random
) -> None:
    numbered = [
        RegionSchema(
            number,
            one.floor,
            (ColumnDef(id=number + 1, type="int64", nullable=True),),
            one.indexes,
            one.dead,
        )
        for number, one in enumerate(told)
    ]
    mixed = [*numbered, *numbered]
    chance.shuffle(mixed)

    one, other = RegionSchema(), RegionSchema()
    for schema in numbered:
        one = joined(one, schema)
    for schema in mixed:
        before, other = other, joined(other, schema)
        assert other.floor >= before.floor
        assert other.dead >= before.dead
        assert not other.indexes & other.dead

    assert one == other
