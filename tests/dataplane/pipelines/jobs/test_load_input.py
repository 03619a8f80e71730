"""Files of users as the table stores them: which are taken, what their rows become, who writes."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from dataplane.pipelines.jobs.load_input import REGION, InputReader, files_at, fits, look_at
from dataplane.pipelines.jobs.load_plan import (
    FILES_MAX,
    OUTPUT_BYTES,
    OUTPUT_ROWS,
    SAMPLE_ROWS,
    InputFile,
    Sample,
    cut_outputs,
    cut_pieces,
    digest_of,
    needs_samples,
)
from dataplane.region.format.columns import KEY
from metasrv_base.errors import Refused
from metasrv_base.schema.keycodec import encode
from metasrv_base.schema.partition import HashRule, RangeRule, router
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.wire.node.jobs import LoadColumn
from metasrv_base.wire.node.orders import RegionColumn
from tests.dataplane.pipelines.load_rig import ID, NOTE, brought, load_job, numbered

INT64 = parse_type("int64")
HIDDEN = LoadColumn(stored=RegionColumn(id=3, type="int32", nullable=False), name=None, otherwise=7)


def column(type: str, *, nullable: bool = True, otherwise: object = None) -> LoadColumn:
    stored = RegionColumn(id=2, type=type, nullable=nullable)
    return LoadColumn.model_validate({"stored": stored, "name": "note", "otherwise": otherwise})


def stored(path: str, *columns: LoadColumn) -> pa.Table:
    job = load_job([path], columns=columns or (ID, NOTE))
    (piece,) = cut_pieces([look_at(job.columns, path)], piece_rows=1 << 30)
    return pa.concat_tables(InputReader(job).rows(piece))


def key(id: int) -> bytes:
    return encode((INT64,), (id,))


# ---- rows


def test_given_rows_of_a_file_when_read_then_each_has_its_key_and_all_that_is_stored(
    tmp_path: Path,
) -> None:
    path = brought(tmp_path / "x.parquet", numbered(3, 1))

    found = stored(path, ID, NOTE, HIDDEN)

    assert found.to_pydict() == {
        REGION: [0, 0],
        KEY: [key(3), key(1)],
        "c1": [3, 1],
        "c2": ["n3", "n1"],
        "c3": [7, 7],
    }


def test_given_a_column_that_the_file_lacks_when_read_then_its_rows_have_the_default(
    tmp_path: Path,
) -> None:
    path = brought(tmp_path / "x.parquet", pa.table({"id": [1, 2]}))

    assert stored(path).column("c2").to_pylist() == [None, None]
    otherwise = column("timestamp(ms)", nullable=False, otherwise="2013-01-01T00:00:00Z")
    assert stored(path, ID, otherwise).column("c2").type == pa.timestamp("ms", tz="UTC")


def test_given_a_null_where_there_is_a_default_when_read_then_it_stays_one(tmp_path: Path) -> None:
    path = brought(tmp_path / "x.parquet", pa.table({"id": [1], "note": pa.nulls(1, pa.string())}))

    assert stored(path, ID, column("string", otherwise="?")).column("c2").to_pylist() == [None]


@pytest.mark.parametrize(
    ("type", "values", "read"),
    [
        ("int32", pa.array([1], pa.int64()), 1),
        ("int16", pa.array([200], pa.uint8()), 200),
        ("float64", pa.array([0.5], pa.float32()), 0.5),
        ("float32", pa.array([0.5], pa.float64()), 0.5),
        ("float64", pa.array([3], pa.int32()), 3.0),
        ("decimal(10,2)", pa.array([Decimal("1.5")], pa.decimal128(5, 1)), Decimal("1.50")),
        ("string", pa.array(["x"], pa.large_string()), "x"),
        ("string", pa.array(["x"]).dictionary_encode(), "x"),
        ("binary", pa.array([b"12"], pa.binary(2)), b"12"),
        ("timestamp(us)", pa.array([1356998400000], pa.timestamp("ms")), 1356998400000000),
        ("boolean", pa.nulls(1), None),
    ],
)
def test_given_another_type_that_loses_nothing_when_read_then_it_is_the_columns(
    tmp_path: Path, type: str, values: pa.Array, read: object
) -> None:
    path = brought(tmp_path / "x.parquet", pa.table({"id": [1], "note": values}))

    found = stored(path, ID, column(type)).column("c2")

    assert found.type == parse_type(type).arrow
    if pa.types.is_timestamp(found.type):
        found = found.cast(pa.int64())
    assert found.to_pylist() == [read]


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("int32", pa.array([1 << 31])),
        ("float32", pa.array([0.1], pa.float64())),
        ("float64", pa.array([(1 << 53) + 1])),
        ("decimal(4,1)", pa.array([Decimal("1.25")])),
        ("timestamp(s)", pa.array([1], pa.timestamp("ms"))),
    ],
)
def test_given_a_value_that_would_lose_something_when_read_then_it_is_refused_and_named(
    tmp_path: Path, type: str, values: pa.Array
) -> None:
    path = brought(tmp_path / "x.parquet", pa.table({"id": [1], "note": values}))

    with pytest.raises(Refused) as refusal:
        stored(path, ID, column(type))

    assert str(refusal.value.facts["found"]).endswith(f" in {path}")


def test_given_text_when_a_number_is_wanted_then_it_is_not_parsed() -> None:
    assert not fits(pa.string(), ColumnType("int64"))
    assert not fits(pa.int64(), ColumnType("string"))
    assert not fits(pa.list_(pa.int64()), ColumnType("binary"))
    assert not fits(pa.float64(), ColumnType("decimal", precision=4, scale=2))


def test_given_a_key_without_a_value_when_read_then_the_column_and_the_file_are_named(
    tmp_path: Path,
) -> None:
    path = brought(tmp_path / "x.parquet", pa.table({"id": [1, None], "note": ["a", "b"]}))

    with pytest.raises(Refused) as refusal:
        stored(path)

    assert refusal.value.facts["found"] == f"null in id in {path}"


# ---- files


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (pa.table({"id": [1], "odd": [1]}), "a column odd"),
        (pa.table({"note": ["x"]}), "no column id"),
        (pa.table({"id": [1], "note": [1]}), "int64 in note"),
    ],
)
def test_given_columns_that_the_table_does_not_have_so_when_looked_at_then_they_are_named(
    tmp_path: Path, rows: pa.Table, found: str
) -> None:
    path = brought(tmp_path / "x.parquet", rows)

    with pytest.raises(Refused) as refusal:
        look_at([ID, NOTE], path)

    assert refusal.value.code == "invalid-request"
    assert refusal.value.facts["found"] == f"{found} in {path}"


def test_given_a_name_that_only_the_system_knows_when_a_file_has_it_then_it_is_unknown(
    tmp_path: Path,
) -> None:
    path = brought(tmp_path / "x.parquet", pa.table({"id": [1], "\0003": [1]}))

    with pytest.raises(Refused):
        look_at([ID, HIDDEN], path)


def test_given_a_folder_when_looked_into_then_hidden_files_are_left_alone(tmp_path: Path) -> None:
    for name in ("b.parquet", "in/a.parquet", "_temporary/c.parquet", ".d.parquet", "e.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    found = [Path(one).relative_to(tmp_path).as_posix() for one in files_at(["/"], str(tmp_path))]

    assert found == ["b.parquet", "in/a.parquet"]


def test_given_what_is_no_parquet_when_looked_at_then_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and then nothing of the sort PAR1")
    (tmp_path / "empty").mkdir()

    for path in ("x.parquet", "missing.parquet"):
        with pytest.raises(Refused) as refusal:
            look_at([ID, NOTE], str(tmp_path / path))
        assert refusal.value.facts["pointer"] == "/paths"
    for path in ("missing", "empty"):
        with pytest.raises(Refused):
            files_at(["/"], str(tmp_path / path))


def test_given_folders_that_are_open_when_a_file_lies_elsewhere_then_it_is_refused(
    tmp_path: Path,
) -> None:
    outside = brought(tmp_path / "outside.parquet", numbered(1))
    inside = brought(tmp_path / "open" / "in.parquet", numbered(1))
    (tmp_path / "open" / "link.parquet").symlink_to(outside)
    folder = str(tmp_path / "open")

    assert files_at([folder], inside) == [inside]
    for path in (outside, folder, f"{folder}/link.parquet", f"{tmp_path}/openly", "/"):
        with pytest.raises(Refused) as refusal:
            files_at([folder], path)
        assert "import_folders" in str(refusal.value.facts["expected"])
    with pytest.raises(Refused):
        files_at([], inside)


def test_given_a_file_that_is_another_by_now_when_read_then_it_is_refused(tmp_path: Path) -> None:
    path = brought(tmp_path / "x.parquet", numbered(1))
    job = load_job([path])
    before = look_at(job.columns, path)
    brought(tmp_path / "x.parquet", numbered(1, 2, 3))
    (piece,) = cut_pieces([before])

    with pytest.raises(Refused):
        list(InputReader(job).rows(piece))

    assert digest_of([before]) != digest_of([look_at(job.columns, path)])


# ---- regions and samples


@pytest.mark.parametrize(
    "rule", [HashRule(columns=(1,), count=3), RangeRule(columns=(1,), bounds=((10,), (20,)))]
)
def test_given_regions_when_rows_are_read_then_each_goes_where_the_table_says(
    tmp_path: Path, rule: HashRule | RangeRule
) -> None:
    path = brought(tmp_path / "x.parquet", numbered(*range(30)))
    job = load_job([path], partition=rule)
    (piece,) = cut_pieces([look_at(job.columns, path)])

    (found,) = InputReader(job).rows(piece)

    expected = [router(rule, [INT64]).number((id,)) for id in range(30)]
    assert found.column(REGION).to_pylist() == expected


def test_given_many_rows_when_sampled_then_each_sample_stands_for_as_many(tmp_path: Path) -> None:
    rows = SAMPLE_ROWS * 40 + 5
    path = brought(tmp_path / "x.parquet", pa.table({"id": range(rows)}), group_rows=70_001)
    job = load_job([path])
    pieces = cut_pieces([look_at(job.columns, path)], piece_rows=1)

    found = [sample for piece in pieces for sample in InputReader(job).samples(piece)]

    assert len(pieces) == 3
    assert 40 <= len(found) <= 40 + len(pieces)
    assert [one.key for one in found[:3]] == [key(at * SAMPLE_ROWS) for at in range(3)]


# ---- who writes what


def file_of(rows: int, groups: int = 1, row_bytes: int = 10) -> InputFile:
    return InputFile("/x", 1, 1, (rows // groups,) * groups, rows * row_bytes)


def samples_of(region: int, rows: int) -> list[Sample]:
    return [Sample(region, key(id)) for id in range(0, rows, SAMPLE_ROWS)]


def test_given_row_groups_when_cut_then_every_one_is_read_once() -> None:
    files = [file_of(100, 10), file_of(5), InputFile("/empty", 1, 1, (), 0)]

    pieces = cut_pieces(files, piece_rows=30)

    assert [piece.number for piece in pieces] == list(range(len(pieces)))
    assert [piece.groups for piece in pieces] == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9,), (0,)]


def test_given_few_rows_when_cut_then_each_region_has_one_file_and_nobody_is_asked() -> None:
    files = [file_of(1000)]

    assert not needs_samples(files, tasks_at_once=8)
    outputs = cut_outputs([4, 2], (), files, tasks_at_once=8)

    assert (outputs.count, outputs.first) == (2, {2: 0, 4: 1})
    assert list(outputs.regions) == [2, 4]


def test_given_many_rows_of_one_region_when_cut_then_its_files_are_of_one_size() -> None:
    rows = OUTPUT_ROWS * 4
    files = [file_of(rows)]
    assert needs_samples(files, tasks_at_once=1)

    outputs = cut_outputs([0, 1], samples_of(0, rows), files, tasks_at_once=1)

    assert outputs.bounds[0] == tuple(key(OUTPUT_ROWS * at) for at in (1, 2, 3))
    assert (outputs.bounds[1], outputs.first[1], outputs.count) == ((), 4, 5)


def test_given_wide_rows_when_cut_then_a_file_is_no_larger_than_its_bytes() -> None:
    rows = SAMPLE_ROWS * 4
    files = [file_of(rows, row_bytes=OUTPUT_BYTES // SAMPLE_ROWS)]

    assert cut_outputs([0], samples_of(0, rows), files, tasks_at_once=1).count == 4


def test_given_rows_of_one_key_range_when_cut_then_no_bound_stands_twice() -> None:
    rows = OUTPUT_ROWS * 3
    same = [Sample(0, key(1))] * (rows // SAMPLE_ROWS)

    assert cut_outputs([0], same, [file_of(rows)], tasks_at_once=1).count == 1


def test_given_more_files_than_a_record_holds_when_cut_then_it_is_refused_with_the_numbers() -> (
    None
):
    with pytest.raises(Refused) as refusal:
        cut_outputs(range(FILES_MAX + 1), (), [file_of(1)], tasks_at_once=1)

    assert refusal.value.code == "ddl-too-large"
