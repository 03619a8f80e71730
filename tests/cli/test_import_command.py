"""`metasrv import --bulk`: what is asked of the service, and what is said of the answer."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Run
from tests.cli.rest import Rest

IMPORT = "/v1/catalogs/main/schemas/public/tables/t/import"
DONE = {"table_id": 1024, "name": "main.public.t", "rows": 7, "files": 2, "bytes": 9, "regions": 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "x.parquet")
    return tmp_path


def test_given_a_folder_or_the_word_bulk_when_imported_then_the_service_reads_the_files(
    run: Run, rest: Rest, folder: Path
) -> None:
    rest.answers[("POST", IMPORT)] = (200, DONE)
    at = ["--metasrv", rest.url]

    one = run("import", "t", str(folder / "x.parquet"), "--bulk", *at)
    all_of_it = run("import", "t", str(folder), *at)
    as_json = run("import", "t", str(folder), "--json", *at)

    assert one.stdout == all_of_it.stdout == "7 rows of 2 files imported into t\n"
    assert '"rows": 7' in as_json.stdout
    paths = [asked.body["paths"] for asked in rest.asked if asked.path.startswith(IMPORT)]
    assert paths == [[str(folder / "x.parquet")], [str(folder)], [str(folder)]]


def test_given_a_folder_without_files_when_a_table_is_to_be_made_of_it_then_it_says_so(
    run: Run, rest: Rest, tmp_path: Path
) -> None:
    words = ["import", "t", str(tmp_path), "--create", "--key", "id", "--metasrv", rest.url]

    shown = run(*words)

    assert shown.exit_code == 1
    assert "files whose names end in .parquet" in shown.stderr
    assert rest.asked == []
