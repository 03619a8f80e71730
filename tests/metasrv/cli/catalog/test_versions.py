"""`table versions`, `table diff`, `catalog versions`: asked for with filters, and shown."""

from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

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
    rest.answers[("GET", f"{TABLES}/t/versions")] = (200, PAGE)
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
