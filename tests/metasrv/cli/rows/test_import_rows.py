"""`metasrv import --bulk`: what is asked of the service, and what is said of the answer."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metasrv_base.errors import NotFound
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.samples import small
from tests.metasrv.sdk.shapes import table_of

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


TABLES = "/v1/catalogs/main/schemas/public/tables"
MADE = table_of(small()).model_dump(mode="json")


def test_given_an_import_that_fails_when_it_made_the_table_then_the_table_goes_again(
    run: Run, rest: Rest, folder: Path
) -> None:
    """Nobody finds the table that was made, so no row is loaded."""
    rest.answers[("GET", f"{TABLES}/t")] = NotFound("table-not-found", name="t")
    rest.answers[("POST", TABLES)] = (201, MADE)
    rest.answers[("DELETE", f"{TABLES}/t")] = (204, None)
    words = ["import", "t", str(folder / "x.parquet"), "--create", "--key", "id"]

    shown = run(*words, "--metasrv", rest.url)

    assert shown.exit_code == 1
    assert "t was made for this import and is dropped again" in shown.stderr
    changes = [(one.method, one.path) for one in rest.asked if one.method != "GET"]
    assert changes == [("POST", TABLES), ("DELETE", f"{TABLES}/t")]
    assert rest.asked[1].body["if_not_exists"] is False


def test_given_a_table_that_is_there_when_an_import_fails_then_it_stays(
    run: Run, rest: Rest, folder: Path
) -> None:
    pq.write_table(
        pq.read_table(folder / "x.parquet").append_column("no", [[1]]), folder / "y.parquet"
    )
    rest.answers[("GET", f"{TABLES}/t")] = (200, MADE)
    words = ["import", "t", str(folder / "y.parquet"), "--create", "--key", "id"]

    shown = run(*words, "--metasrv", rest.url)

    assert shown.exit_code != 0
    assert {one.method for one in rest.asked} == {"GET"}


@pytest.mark.parametrize("words", [["--null", "NA"], ["--encoding", "latin-1"]])
def test_given_words_of_csv_when_the_file_is_another_then_they_make_no_sense(
    run: Run, rest: Rest, folder: Path, words: list[str]
) -> None:
    shown = run("import", "t", str(folder / "x.parquet"), *words, "--metasrv", rest.url)

    assert shown.exit_code == 2
    assert rest.asked == []


def test_given_a_file_that_is_not_there_when_imported_then_nothing_is_asked(
    run: Run, rest: Rest, tmp_path: Path
) -> None:
    shown = run("import", "t", str(tmp_path / "no.csv"), "--metasrv", rest.url)

    assert (shown.exit_code, rest.asked) == (2, [])
    assert "there is no file" in shown.stderr
