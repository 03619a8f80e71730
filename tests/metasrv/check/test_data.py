"""`metasrv check --data`: what the service says of every table, one fault a line."""

from typing import Any

import pytest

from metasrv.cli.tools.check import Target, look_at_data
from metasrv.cli.tools.check_data import violations
from metasrv_base.wire.node.checks import DataRule, TableCheckBody, TableFault
from tests.metasrv.cli.rest import serving

MADE = {"id": 1, "options": {}, "created_at": "2013-01-31T23:59:59Z", "catalog_version": 9}
SUMMARY = {"id": 1024, "name": "t", "version": 1, "created_at": "2013-01-31T23:59:59Z"}
CLEAN = {
    "table_id": 1024,
    "name": "main.public.t",
    "rows": 5,
    "entries": 5,
    "clean": True,
    "totals": {},
    "faults": [],
}
WRONG = TableFault(
    rule=DataRule.ENTRY_WRONG,
    region_id="4398046511104",
    element="by_note",
    keys=[{"id": 9}],
    values={"note": "x"},
    entry_key="00ff",
)


def test_given_faults_when_shown_then_each_is_a_line_and_what_is_only_counted_another() -> None:
    found = TableCheckBody(
        table_id=1024,
        name="main.public.t",
        rows=5,
        entries=5,
        clean=False,
        totals={DataRule.ENTRY_WRONG: 1, DataRule.BYTES_UNEXPLAINED: 7},
        faults=[WRONG],
    )

    lines = [one.line for one in violations(found)]

    assert lines == [
        "violation entry-wrong main.public.t.by_note region 4398046511104: row id=9, "
        "values note=x, entry 00ff; right: a row with these values for every entry",
        "violation bytes-unexplained main.public.t: 7 faults, none of them listed; "
        "right: nothing that the region did not write",
    ]


def test_given_a_cluster_when_looked_at_then_each_table_of_each_schema_is_checked() -> None:
    schemas, tables = "/v1/catalogs/main/schemas", "/v1/catalogs/main/schemas/public/tables"
    with serving() as rest:
        rest.answers = {
            ("GET", "/v1/catalogs"): (200, page("catalogs", {**MADE, "name": "main"})),
            ("GET", schemas): (200, page("schemas", {**MADE, "catalog": "main", "name": "public"})),
            ("GET", tables): (200, page("tables", SUMMARY)),
            ("POST", f"{tables}/t/check"): (200, CLEAN),
        }

        found = look_at_data(Target(etcd=(), prefix="", metasrv=(rest.url,)))

    assert found.violations == ()
    assert found.counts == {"tables": 1, "rows": 5, "entries": 5, "faults": 0}


def test_given_no_service_named_when_looked_at_then_it_is_asked_where_it_is() -> None:
    with pytest.raises(ValueError, match="name the service"):
        look_at_data(Target(etcd=(), prefix="", metasrv=()))


def page(name: str, *items: dict[str, Any]) -> dict[str, Any]:
    return {name: list(items), "catalog_version": 9}
