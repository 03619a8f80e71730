"""`metasrv schema-lease`: who computes from the catalog, and who keeps a change waiting."""

import json
from typing import Any

from metasrv_base.wire.api.tables import TableSpec
from tests.metasrv.api.rig import spec
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.shapes import procedure, table_of

LEASE: dict[str, Any] = {
    "holder_id": "fe-2",
    "incarnation": "i-1",
    "address": "http://127.0.0.1:4400",
    "version": "0.1.0",
    "registered_at": "2026-01-01T00:00:00.000Z",
    "have": 16,
    "acknowledged_ms_ago": 40,
    "lease_left_ms": 8_200,
    "pinned": [
        {
            "table_id": 1024,
            "schema_version": 4,
            "transaction": "t-9",
            "age_ms": 2_500,
            "table": "main.public.t",
        }
    ],
    "statement_p99_ms": 3.5,
}


def test_given_holders_when_listed_then_each_with_what_it_uses(run: Run, rest: Rest) -> None:
    rest.answers["GET", "/v1/schema-leases"] = (200, {"holders": [LEASE], "catalog_version": 17})

    text = run("schema-lease", "list", "--metasrv", rest.url)
    document = run("schema-lease", "list", "--json", "--metasrv", rest.url)

    assert text.exit_code == 0, text.output
    for said in ("fe-2", "16", "8.2 s", "main.public.t at 4 by t-9 (2.5 s)"):
        assert said in text.output
    assert json.loads(document.output) == [LEASE]


def test_given_a_table_and_a_version_when_asked_then_its_id_is_asked_for(
    run: Run, rest: Rest
) -> None:
    table = table_of(TableSpec.model_validate(spec()))
    path = "/v1/catalogs/main/schemas/public/tables/t"
    rest.answers["GET", path] = (200, json.loads(table.model_dump_json()))
    rest.answers["GET", "/v1/schema-leases"] = (200, {"holders": [], "catalog_version": 17})

    done = run(
        *("schema-lease", "list", "--table", "main.public.t", "--older-than", "5"),
        *("--metasrv", rest.url),
    )

    assert done.exit_code == 0, done.output
    assert rest.asked[-1].path == f"/v1/schema-leases?table={table.id}&older_than=5"


def test_given_a_change_that_waits_when_shown_then_it_says_for_whom_and_why(
    run: Run, rest: Rest
) -> None:
    wait = {
        "kind": "schema_lease",
        "holder": "fe-2",
        "since": "2026-01-01T00:00:00.000Z",
        "expires_in_s": 8,
        "have": 16,
        "need": 17,
        "transaction": "t-9",
        "transaction_age_ms": 2_500,
    }
    lock = {"kind": "lock", "key": "table:1024", "holder": "p-1", "since": "2026"}
    found = procedure(waiting_for=[wait, lock])
    rest.answers["GET", f"/v1/procedures/{found['id']}"] = (200, found)

    shown = run("procedure", "get", found["id"], "--metasrv", rest.url)

    assert shown.exit_code == 0, shown.output
    for said in (
        "schema_lease of fe-2",
        "at version 16 of 17",
        "for t-9 (2.5 s old)",
        "8 s at most",
        "lock table:1024 of p-1",
    ):
        assert said in shown.output


def test_given_a_change_with_transitions_when_shown_then_each_says_who_was_late_and_what_was_sent(
    run: Run, rest: Rest
) -> None:
    shift = {
        "what": "index",
        "id": 1,
        "name": "by_a",
        "before": "absent",
        "after": "delete-only",
    }
    late = {"holder": "fe-2", "waited_ms": 8_001, "went": "removed", "transaction": "t-9"}
    transition = {
        "table_id": 1024,
        "schema_version": 4,
        "shifts": [shift],
        "regions": 3,
        "told_ms": 12,
        "catalog_version": 17,
        "published_at": "2026-01-01T00:00:00.000Z",
        "drained_at": "2026-01-01T00:00:08.001Z",
        "drain_ms": 8_001,
        "holders": 2,
        "late": [late],
    }
    progress = {
        "phase": "fill",
        "done": 420_000,
        "total": 1_000_000,
        "unit": "rows",
        "rate_per_s": 35_000,
        "eta_s": 17,
    }
    sent = {"method": "POST", "path": "/v1/x/indexes", "body": {"name": "by_a"}}
    found = procedure(transitions=[transition], progress=progress, statement=sent)
    rest.answers["GET", f"/v1/procedures/{found['id']}"] = (200, found)

    shown = run("procedure", "get", found["id"], "--metasrv", rest.url)

    assert shown.exit_code == 0, shown.output
    for said in (
        "by_a absent -> delete-only",
        "3 in 12 ms",
        "fe-2 removed after 8001 ms (t-9)",
        "name=by_a",
        "420,000 of 1,000,000 rows, 35,000 a second, 17 s left",
    ):
        assert said in shown.output
