"""Faults in files of rows are told with their line and column; packed files and stdin are read."""

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pytest

from metasrv.cli.file_faults import Dialect
from metasrv.cli.files import row_file
from metasrv.cli.rows.plain_file import plain_file
from metasrv_base.errors import Refused

KNOWN = pa.schema({"id": pa.int64(), "n": pa.int64(), "p": pa.decimal128(9, 2)})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.csv", "id,n\n1,2\n2,bad\n", "line 3, column n: 'bad' is no int64"),
        ("x.csv", "id,p\n1,1.5\n2,dear\n", "column p: 'dear' is not a valid decimal number"),
        ("x.csv", 'id,n\n1,"2\n2"\n', "line 3, column n"),
        ("x.csv", "id,n\n1,2\n2,3,4\n", "line 3 has 3 fields; the header has 2"),
        ("x.ndjson", '{"id":1,"n":2}\n{"id":2,"n":"a"}\n', 'line 2, column n: "a" is no number'),
        ("x.ndjson", '{"id":1,"n":2}\n\n{"id":2,"n"\n', "line 3, character"),
    ],
)
def test_given_a_fault_in_a_file_when_read_then_line_and_column_are_said(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(Refused) as raised, row_file(tmp_path / name, KNOWN) as found:
        list(found.batches)

    assert said in str(raised.value.facts["reason"])


def test_given_a_delimiter_when_read_then_fields_end_there(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id;n\n1;2\n")

    with row_file(tmp_path / "x.csv", KNOWN, Dialect(delimiter=";")) as found:
        rows = pa.Table.from_batches(found.batches).to_pylist()

    assert rows == [{"id": 1, "n": 2}]


def test_given_a_packed_file_when_opened_then_it_is_unpacked_and_gone_after(
    tmp_path: Path,
) -> None:
    packed = tmp_path / "x.csv.gz"
    packed.write_bytes(gzip.compress(b"id,n\n1,2\n"))

    with plain_file(packed, None) as path:
        assert (path.name, path.read_text()) == ("x.csv", "id,n\n1,2\n")

    assert not path.exists()


def test_given_stdin_when_opened_then_it_is_a_file_of_the_format(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"id\n1\n"))
    monkeypatch.setattr("sys.stdin", stdin)

    with plain_file(Path("-"), ".csv") as path:
        assert (path.suffix, path.read_text()) == (".csv", "id\n1\n")


@pytest.mark.parametrize("name", ["x.csv.gz", "y.csv.gz"])
def test_given_a_packed_file_that_is_not_there_or_not_packed_then_it_is_refused(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "x.csv.gz").write_text("id\n1\n")

    with pytest.raises(Refused), plain_file(tmp_path / name, None):
        pass
