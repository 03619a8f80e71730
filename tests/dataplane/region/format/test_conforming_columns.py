"""A column of another type reads as the conversion of the one it replaces, wherever rows lie."""

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.pipelines.jobs.entry_files import rows_at_mark
from dataplane.region.check.inspect_files import reader_of
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.columns import (
    DELETE,
    PUT,
    ColumnDef,
    RegionOriginColumn,
    RegionSpec,
    columns_told,
    file_schema,
)
from dataplane.region.format.conforming import conformed
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.schema import RegionSchema
from dataplane.region.indexes.index_entries import IndexDef, entries_of
from dataplane.region.manifests.manifest import FileEntry
from metasrv_base.errors import MetaError
from metasrv_base.schema.types import arrow_type
from tests.dataplane.region.model_world import SMALL, World
from tests.dataplane.region.power_loss import FAST, Life, cut_short
from tests.dataplane.region.retyped import (
    COUNT,
    RETYPED,
    STAGES,
    TEXT,
    WIDE,
    Numbers,
    come_to,
    numbers,
    put,
)
from tests.dataplane.region.rig import A, header, order, place
from tests.fakes.clock import FakeClock

KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
ROWS = st.dictionaries(KEYS, st.none() | st.integers(-3, 3), min_size=1, max_size=3)
ACTIONS: st.SearchStrategy[tuple[str, dict[bytes, int | None]]] = st.one_of(
    st.tuples(st.sampled_from(["write", "write of before"]), ROWS),
    st.tuples(
        st.sampled_from(["change", "flush", "merge", "reopen", "move", "adopt", "power loss"]),
        st.just({}),
    ),
)


@dataclass
class Changing:
    """A region whose one column becomes another, and that another one; and what it must hold."""

    world: World
    """Whose own rows are none."""
    stage: int = 0
    model: Numbers = field(default_factory=dict)

    def act(self, action: str, rows: dict[bytes, int | None]) -> None:
        match action:
            case "write":
                self._put(rows, STAGES[self.stage])
            case "write of before":
                self._put(rows, STAGES[max(self.stage - 1, 0)])
            case "change":
                self.stage = min(self.stage + 1, len(STAGES) - 1)
                come_to(self.world.region, self.stage)
            case "merge":
                self.world.region.maintenance.flush()
                while self.world.region.maintenance.compact():
                    pass
            case _:
                self.world.act(action, {})

    def _put(self, rows: dict[bytes, int | None], columns: tuple[ColumnDef, ...]) -> None:
        self.world.statements += 1
        put(self.world.region, f"s-{self.world.statements}", rows, columns)
        for key, number in rows.items():
            if number is None:
                self.model.pop(key, None)
            else:
                self.model[key] = number


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(ACTIONS, min_size=5, max_size=25))
def test_given_any_history_when_a_type_changes_twice_then_rows_say_what_they_said(
    history: list[tuple[str, dict[bytes, int | None]]],
) -> None:
    disk, clock = MemoryDisk(MemoryStore()), FakeClock()
    region = Region.create(place(disk, "/disk/0", clock, SMALL), RETYPED, epoch=1)
    changing = Changing(World(disk, region, clock))

    for action, rows in history:
        changing.act(action, rows)
        clock.advance(1)
        assert numbers(changing.world.region) == changing.model


@pytest.mark.parametrize("stage", range(1, len(STAGES)))
def test_given_a_file_and_a_log_of_the_first_type_when_only_the_last_is_left_then_both_say_it(
    stage: int,
) -> None:
    region = filed_and_logged()
    come_to(region, stage)

    assert numbers(region) == BOTH

    later = Region.open(place(region.place.disk), order(1))
    assert numbers(later) == BOTH
    come_to(later, len(STAGES) - 1)
    later.maintenance.flush()
    assert numbers(later) == BOTH


def test_given_files_of_every_stage_when_merged_then_one_has_the_last_column_alone() -> None:
    region = Region.create(place(), RETYPED, epoch=1)
    for stage, columns in enumerate(STAGES):
        come_to(region, stage)
        put(region, f"s-{stage}", {bytes([stage]): stage, b"x": stage}, columns)
        region.maintenance.flush()

    while region.maintenance.compact():
        pass

    merged = {bytes([stage]): stage for stage in range(len(STAGES))} | {b"x": len(STAGES) - 1}
    assert numbers(region) == merged
    named = [columns_in(region, entry) for entry in region.manifest.files]
    assert {"c4"} in named


@pytest.mark.slow
def test_given_power_loss_at_any_operation_of_a_change_then_every_row_says_what_it_said() -> None:
    def change(life: Life) -> None:
        region = Region.open(place(life.disk), order(1))
        for stage in (1, 2):
            come_to(region, stage)
            put(region, f"s-{stage}", {b"x": 1}, STAGES[stage])
        region.maintenance.flush()

    filed_and_logged(MemoryDisk(store := MemoryStore()))
    lives = 0
    for _, left in cut_short(store, FAST, change):
        lives += 1
        after = Region.open(place(MemoryDisk(left)), order(1))
        assert BOTH.items() <= numbers(after).items() <= {**BOTH, b"x": 1}.items()
        come_to(after, len(STAGES) - 1)
        assert BOTH.items() <= numbers(after).items()
    assert lives > 30


def test_given_a_batch_of_an_older_writer_whose_value_does_not_convert_then_it_is_taken() -> None:
    region = Region.create(place(), spec(PLAIN), epoch=1)
    region.set_schema(RegionSchema(1, 0, (PLAIN, NUMBER)))

    said(region, {b"a": "7", b"b": "x"}, [PLAIN])

    rows = region.reader.get([b"a", b"b"])
    assert rows.column("c2").to_pylist() == ["7", "x"]
    assert rows.column("c3").to_pylist() == [7, None]
    with pytest.raises(MetaError, match="null in a put"):
        said(region, {b"a": None}, [PLAIN, NUMBER])


def test_given_a_value_that_does_not_convert_when_a_newer_one_hides_it_then_nothing_is_lost() -> (
    None
):
    region = Region.create(place(), spec(PLAIN), epoch=1)
    said(region, {b"a": "x", b"b": "1"}, [PLAIN])
    region.maintenance.flush()
    said(region, {b"a": "2"}, [PLAIN])
    region.set_schema(RegionSchema(2, 0, (NUMBER,)))

    for _ in range(2):
        assert region.reader.get([b"a", b"b"]).column("c3").to_pylist() == [2, 1]
        region.maintenance.flush()


def test_given_what_was_replaced_when_a_batch_still_has_it_then_it_is_left_out() -> None:
    region = Region.create(place(), spec(PLAIN), epoch=1)
    region.set_schema(RegionSchema(3, 0, (NUMBER,)))

    said(region, {b"a": "7"}, [PLAIN, NUMBER])
    said(region, {b"b": "8"}, [PLAIN])

    assert region.reader.get([b"a", b"b"]).column("c3").to_pylist() == [7, 8]
    assert region.reader.get([b"a"]).column_names == ["_key", "_version", "c3"]


def test_given_no_column_of_the_chain_when_read_then_a_row_has_the_origin_default() -> None:
    column = WIDE.model_copy(update={"origin_default": 9})
    ops = pa.array([PUT, DELETE], pa.uint8())
    bare = pa.table({"_key": [b"a", b"b"], "_version": [1, 2], "_op": ops})

    assert conformed(bare, file_schema([column])).column("c3").to_pylist() == [9, None]
    assert conformed(bare, file_schema([WIDE])).column("c3").to_pylist() == [None, None]


def test_given_rows_of_before_when_an_index_over_the_new_type_is_filled_then_it_is_right() -> None:
    region = filed_and_logged()
    last = len(STAGES) - 1
    region.set_schema(RegionSchema(last, last, STAGES[last]), "reorg")
    snapshot = region.snapshot("reorg")
    columns = columns_told(snapshot.columns)
    index = IndexDef.of(5, [TEXT.id], columns, unique=True)

    found = list(rows_at_mark(region.place.disk, snapshot, KeyRange(), index.columns))

    written = Region.create(place(), RETYPED.model_copy(update={"columns": columns}), epoch=1)
    put(written, "s-1", BOTH, [TEXT])
    (expected,) = written.reader.scan()
    of_found = entries_of(pa.concat_tables(found), index).select(["_key", "_row"])
    assert of_found.equals(entries_of(pa.table(expected), index).select(["_key", "_row"]))


def test_given_steps_when_converted_then_each_is_taken_for_itself() -> None:
    """The digits of a float64 are not those of the float32 that it was."""
    text = ColumnDef(
        id=3,
        type="string",
        nullable=True,
        origin_columns=(
            RegionOriginColumn(id=2, type="float64"),
            RegionOriginColumn(id=1, type="float32"),
        ),
    )
    rows = {"_key": [b"a"], "_version": [1], "_op": pa.array([PUT], pa.uint8())}

    short = pa.table({**rows, "c1": pa.array([0.1], pa.float32())})
    long = pa.table({**rows, "c1": pa.array([0.1], pa.float32()), "c2": pa.array([0.1])})

    schema = file_schema([text])
    assert conformed(short, schema).column("c3").to_pylist() == ["0.10000000149011612"]
    assert conformed(long, schema).column("c3").to_pylist() == ["0.1"]


@pytest.mark.parametrize(
    ("source", "stored", "target", "value"),
    [
        ("timestamp(s)", 0, "string", "1970-01-01T00:00:00Z"),
        ("timestamp(s)", 86_400, "date", date(1970, 1, 2)),
        ("decimal(4,2)", Decimal("1.50"), "string", "1.50"),
        ("binary", b"x", "string", "x"),
        ("boolean", True, "int8", 1),
    ],
)
def test_given_a_file_of_any_type_when_read_as_another_then_it_is_the_conversion(
    source: str, stored: object, target: str, value: object
) -> None:
    disk = MemoryDisk(MemoryStore())
    disk.make_folder(f"{A}/data")
    old = ColumnDef(id=1, type=source, nullable=True)
    new = ColumnDef(
        id=2, type=target, nullable=True, origin_columns=(RegionOriginColumn(id=1, type=source),)
    )
    arrays = [[b"a"], [1], [PUT], pa.array([stored], arrow_type(source))]
    rows = pa.table(arrays, schema=file_schema([old]))
    reader = reader_of(
        disk, A, write_rows(FileTarget(disk, A, "data/1-1-1.parquet", [old]), [rows])
    )

    (scanned,) = reader.scan(KeyRange(), [new])

    assert scanned.column("c2").to_pylist() == [value]
    assert reader.rows_of([b"a"], [new]) == scanned
    assert reader.rows_of([b"a"], [old, new]).column_names[-2:] == ["c1", "c2"]


BOTH: Numbers = {b"file": 7, b"log": -8}
PLAIN = ColumnDef(id=2, type="string", nullable=False)
NUMBER = ColumnDef(
    id=3, type="int8", nullable=False, origin_columns=(RegionOriginColumn(id=2, type="string"),)
)


def filed_and_logged(disk: MemoryDisk | None = None) -> Region:
    """One row in a file, one in the log, and one that was deleted."""
    region = Region.create(place(disk), RETYPED, epoch=1)
    put(region, "f-1", {b"file": 7, b"gone": 1}, [COUNT])
    region.maintenance.flush()
    put(region, "f-2", {b"log": -8, b"gone": None}, [COUNT])
    return region


def spec(column: ColumnDef) -> RegionSpec:
    return RETYPED.model_copy(update={"columns": (column,)})


def said(region: Region, rows: dict[bytes, str | None], columns: list[ColumnDef]) -> None:
    """Puts texts; in columns of numbers their numbers."""
    texts = list(rows.values())
    found = {"_key": list(rows), "_op": pa.array([PUT] * len(rows), pa.uint8())}
    for column in columns:
        values = texts if column.type == "string" else [text and int(text) for text in texts]
        found[column.name] = pa.array(values, arrow_type(column.type))
    statement = f"{region.schema.version} {rows} {len(columns)}"
    head = header(statement, schema_version=region.schema.version)
    (answer,) = region.writer.apply([(head, pa.RecordBatch.from_pydict(found))])
    if isinstance(answer, MetaError):
        raise answer


def columns_in(region: Region, entry: FileEntry) -> set[str]:
    rows = reader_of(region.place.disk, region.place.root, entry).scan_as_written()
    return {name for name in next(rows).column_names if name[0] == "c"}
