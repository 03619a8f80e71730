"""A name that does not exist: the near one, or those that do, and the command that lists them."""

from typing import Any

import pytest

from metasrv_base.errors import NotFound
from tests.metasrv.cli.answers import NODE, TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.shapes import procedure

REGION = {
    "region_id": "4398046511106",
    "table_id": 1024,
    "table": "main.public.t",
    "number": 2,
    "leader": "dn-1",
    "epoch": 1,
    "state": "open",
    "address": "http://dn-1",
    "root": "/data",
    "borrows": [],
    "stat": None,
}
ID = "01a20bc8-f90b-786d-9df9-a359cd55473b"
SCHEMAS = "/v1/catalogs/main/schemas"


def schema(name: str) -> dict[str, Any]:
    return {
        "id": 1024,
        "catalog": "main",
        "name": name,
        "options": {},
        "created_at": "2013-01-01T00:00:00Z",
        "catalog_version": 1,
    }


@pytest.fixture
def cluster(rest: Rest) -> Rest:
    """Two nodes, three schemas, one region and one procedure."""
    nodes = [{**NODE, "id": id, "state": "alive", "zone": "east"} for id in ("dn-1", "dn-2")]
    rest.answers["GET", "/v1/nodes"] = (200, {"nodes": nodes})
    schemas = [schema("public"), schema("sales"), schema("stock")]
    rest.answers["GET", SCHEMAS] = (
        200,
        {"schemas": schemas, "catalog_version": 1, "next_page_token": None},
    )
    rest.answers["GET", "/v1/regions"] = (
        200,
        {"regions": [REGION], "catalog_version": 1, "next_page_token": None},
    )
    rest.answers["GET", "/v1/procedures"] = (
        200,
        {"procedures": [procedure(id=ID)], "next_page_token": None},
    )
    return rest


CASES: list[tuple[list[str], str, NotFound, list[str]]] = [
    (
        ["node", "get", "dn1"],
        "/v1/nodes/dn1",
        NotFound(what="node", name="dn1"),
        ["did you mean dn-1?", "`metasrv node list` shows the nodes"],
    ),
    (
        ["node", "get", "zebra"],
        "/v1/nodes/zebra",
        NotFound(what="node", name="zebra"),
        ["there are: dn-1, dn-2", "`metasrv node list` shows the nodes"],
    ),
    (
        ["region", "get", "4398046511109"],
        "/v1/regions/4398046511109",
        NotFound(what="region", name="4398046511109"),
        ["did you mean 4398046511106?", "`metasrv region list` shows the regions"],
    ),
    (
        ["table", "list", "zzz"],
        f"{SCHEMAS}/zzz/tables",
        NotFound(what="schema", name="main.zzz"),
        ["there are: public, sales, stock", "`metasrv schema list main` shows the schemas"],
    ),
    (
        ["table", "list", "sale"],
        f"{SCHEMAS}/sale/tables",
        NotFound(what="schema", name="main.sale"),
        ["did you mean sales?"],
    ),
    (
        ["procedure", "get", f"{ID[:-2]}c3"],
        f"/v1/procedures/{ID[:-2]}c3",
        NotFound("procedure-not-found", procedure_id=f"{ID[:-2]}c3"),
        [f"did you mean {ID}?", "`metasrv procedure list` shows the newest"],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_given_a_name_that_does_not_exist_then_what_does_is_said(
    run: Run, cluster: Rest, case: tuple[list[str], str, NotFound, list[str]]
) -> None:
    words, path, error, said = case
    cluster.answers["GET", path] = error

    shown = run(*words, "--metasrv", cluster.url)

    assert shown.exit_code == 1
    assert [part for part in said if part not in shown.stderr] == []
    assert "a list shows" not in shown.stderr
    assert "metasrv procedure get" not in shown.stderr  # there is none to get


def test_given_many_names_when_none_is_near_then_ten_are_shown_and_the_others_counted(
    run: Run, rest: Rest
) -> None:
    nodes = [{**NODE, "id": f"dn-{number:02}"} for number in range(25)]
    rest.answers["GET", "/v1/nodes"] = (200, {"nodes": nodes})
    rest.answers["GET", "/v1/nodes/zebra"] = NotFound(what="node", name="zebra")

    shown = run("node", "get", "zebra", "--metasrv", rest.url)

    assert "dn-09 and 15 more" in shown.stderr
    assert "dn-10" not in shown.stderr


def test_given_a_table_that_was_not_there_yet_then_its_own_name_is_not_suggested(
    run: Run, rest: Rest
) -> None:
    rest.answers["GET", f"{TABLES}/t"] = NotFound("table-not-found", name="main.public.t")
    table = {"id": 1024, "name": "t", "version": 1, "created_at": "2013-01-01T00:00:00Z"}
    rest.answers["GET", TABLES] = (
        200,
        {"tables": [table], "catalog_version": 1, "next_page_token": None},
    )

    shown = run("table", "get", "t", "--as-of", "1", "--metasrv", rest.url)

    assert "There is no table main.public.t." in shown.stderr
    assert "did you mean" not in shown.stderr


def test_given_another_schema_then_the_near_name_is_one_that_a_command_takes(
    run: Run, rest: Rest
) -> None:
    path = "/v1/catalogs/main/schemas/sales/tables/itmes"
    error = NotFound("table-not-found", name="main.sales.itmes", did_you_mean="items")
    rest.answers["GET", path] = error

    shown = run("table", "get", "sales.itmes", "--metasrv", rest.url)

    assert "did you mean main.sales.items?" in shown.stderr


def test_given_a_node_or_zone_that_is_none_when_lists_are_filtered_then_it_is_said(
    run: Run, cluster: Rest
) -> None:
    nothing = {"regions": [], "catalog_version": 1, "next_page_token": None}
    cluster.answers["GET", "/v1/regions"] = (200, nothing)
    cluster.answers["GET", "/v1/nodes/dn1"] = NotFound(what="node", name="dn1")

    regions = run("region", "list", "--node", "dn1", "--metasrv", cluster.url)
    nodes = run("node", "list", "--zone", "eats", "--metasrv", cluster.url)

    assert (regions.exit_code, "did you mean dn-1?" in regions.stderr) == (1, True)
    assert (nodes.exit_code, "did you mean east?" in nodes.stderr) == (2, True)
