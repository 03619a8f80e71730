"""Lines that cannot be read are left out, found among thousands, and listed."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv.cli.file_faults import Dialect
from metasrv.cli.files import row_file
from metasrv.cli.skipping import LISTED_MAX, Skipped

KNOWN = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("t", pa.timestamp("ms", "UTC")),
        pa.field("s", pa.string()),
    ]
)


def rows_of(
    path: Path, skipped: Skipped, dialect: Dialect | None = None
) -> list[dict[str, object]]:
    with row_file(path, KNOWN, dialect or Dialect(), skipped) as file:
        return [row for batch in file.batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("name", "text", "ids", "reasons"),
    [
        ("x.csv", "id,n\n1,2\n2,bad\n3,4\n", [1, 3], {3: "column n: 'bad' is no int32"}),
        ("x.csv", "id,n\n1,2\n2,3,4\n3,4\n", [1, 3], {3: "Expected 2 columns, got 3"}),
        ("x.csv", "id,n\n1,2\n,5\n", [1], {3: "column id: null, and it takes none"}),
        ("x.csv", "id,t\n1,2013-01-01\n2,soon\n", [1], {3: "column t: no timestamp(ms)"}),
        ("x.csv", 'id,s,n\n1,"a\nb",1\n2,"c",x\n3,"d",3\n', [1, 3], {4: "'x' is no int32"}),
        ("x.csv", "id,n\n", [], {}),
        ("x.csv", "id,n\n\n1,2\n", [1], {}),
        ("x.ndjson", '{"id":1}\n{"id":\n{"id":3}\n', [1, 3], {2: "JSON parse error"}),
        ("x.ndjson", '{"id":1}\n{"id":"a"}\n', [1], {2: "JSON"}),
    ],
)
def test_given_lines_that_cannot_be_read_when_skipped_then_the_others_are_there(
    tmp_path: Path, name: str, text: str, ids: list[int], reasons: dict[int, str]
) -> None:
    (tmp_path / name).write_text(text)
    skipped = Skipped()

    rows = rows_of(tmp_path / name, skipped)

    assert [row["id"] for row in rows] == ids
    assert [line for line, _ in skipped.first] == list(reasons)
    for (_, said), reason in zip(skipped.first, reasons.values(), strict=True):
        assert reason in said


def test_given_another_dialect_when_skipped_then_it_is_read_by_it(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes("id;s;n\n1;é;NA\n2;x;bad\n".encode("latin-1"))
    skipped = Skipped()

    rows = rows_of(tmp_path / "x.csv", skipped, Dialect(("NA",), "latin-1", ";"))

    assert rows == [{"id": 1, "s": "é", "n": None}]
    assert skipped.count == 1


@given(st.sets(st.integers(0, 11_999), max_size=30))
@pytest.mark.slow
def test_given_bad_lines_anywhere_in_a_large_file_then_exactly_those_are_left_out(
    tmp_path_factory: pytest.TempPathFactory, bad: set[int]
) -> None:
    path = tmp_path_factory.mktemp("skip") / "x.csv"
    lines = (f"{id},{'x' if id in bad else id}" for id in range(12_000))
    path.write_text("\n".join(["id,n", *lines]))
    skipped = Skipped()

    rows = rows_of(path, skipped)

    assert {row["id"] for row in rows} == set(range(12_000)) - bad
    assert skipped.count == len(bad)
    assert [line for line, _ in skipped.first] == [id + 2 for id in sorted(bad)[:LISTED_MAX]]
