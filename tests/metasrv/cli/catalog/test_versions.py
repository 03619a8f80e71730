"""`table versions`, `table diff`, `catalog versions`: asked for with filters, and shown."""

from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.samples import small
from tests.metasrv.sdk.shapes import table_of

CHANGE = {
    "version": 7,
    "first_version": 5,
    "versions": 3,
    "committed_at": "2026-01-01T00:00:00Z",
    "by": "anna",
    "request_id": "r-1",
    "procedure_id": None,
    "statement": None,
    "operations": [],
    "operations_total": 0,
    "transitions": [
        {"what": "column", "id": 3, "name": "n", "before": "absent", "after": "delete-only"}
    ],
    "text": "alter main.public.t: add column n int64",
}
PAGE = {"changes": [CHANGE], "catalog_version": 7, "oldest_version": 0, "next_page_token": None}


def test_given_a_history_when_listed_then_each_change_is_a_line(run: Run, rest: Rest) -> None:
    of_table = {"table_id": 1024, "schema_id": 1, "schema_versions": []}
    rest.answers[("GET", f"{TABLES}/t/versions")] = (200, {**PAGE, **of_table})
    rest.answers[("GET", "/v1/catalog/versions")] = (200, PAGE)

    table = run("table", "versions", "t", "--transitions", "--metasrv", rest.url)
    every = run(
        *["catalog", "versions", "--operation", "add_column", "--by", "anna"],
        *["--metasrv", rest.url],
    )

    assert (table.exit_code, every.exit_code) == (0, 0), table.output + every.output
    assert "add column n int64; n absent to delete-only" in table.stdout
    assert "anna" in every.stdout
    paths = [asked.path for asked in rest.asked]
    assert any("transitions=true" in path for path in paths)
    assert any("operation=add_column" in path and "by=anna" in path for path in paths)


def test_given_two_versions_then_the_difference_is_shown_in_words(run: Run, rest: Rest) -> None:
    moment = {"committed_at": "2026-01-01T00:00:00Z", "name": "main.public.t"}
    numbers = {"table_version": 1, "schema_version": 1}
    rest.answers[("GET", f"{TABLES}/t/diff")] = (
        200,
        {
            "table_id": 1024,
            "before": {"version": 5, **moment, **numbers},
            "after": {"version": 7, **moment, **numbers},
            "operations": [{"op": "drop_column", "name": "n"}],
            "indexes": [],
            "text": ["drop column n"],
        },
    )

    shown = run("table", "diff", "t", "--from", "5", "--to", "7", "--metasrv", rest.url)

    assert (shown.exit_code, shown.stdout) == (0, "drop column n\n")
    assert rest.asked[-1].path == f"{TABLES}/t/diff?from=5&to=7"


def test_given_sets_of_columns_then_each_is_a_line(run: Run, rest: Rest) -> None:
    column = {"id": 1, "name": "id", "type": "int64", "nullable": False, "state": "public"}
    at = {"schema_version": 3, "catalog_version": 7, "committed_at": "2026-01-01T00:00:00.000Z"}
    sets = {"table_id": 1024, "schema_id": 1, "schema_versions": [{**at, "columns": [column]}]}
    rest.answers[("GET", f"{TABLES}/t/versions")] = (200, {**PAGE, **sets})

    shown = run("table", "versions", "t", "--columns", "--metasrv", rest.url)

    assert shown.exit_code == 0
    assert "id int64" in shown.stdout
    assert rest.asked[-1].path == f"{TABLES}/t/versions?page_size=1"


def test_given_a_restore_then_what_does_not_come_back_is_said(run: Run, rest: Rest) -> None:
    body = table_of(small()).model_dump(mode="json", by_alias=True)
    body["not_restored"] = ["values of column n: they went with it"]
    rest.answers[("POST", f"{TABLES}/t/restore")] = (200, body)

    shown = run("table", "restore", "t", "--to-version", "7", "--metasrv", rest.url)

    assert shown.exit_code == 0
    assert "not restored: values of column n: they went with it" in shown.stdout
    assert rest.asked[-1].body == {"version": 7, "grace_s": 0}
