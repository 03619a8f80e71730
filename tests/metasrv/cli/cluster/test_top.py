"""`metasrv top --once`: what a person sees of a cluster, with and without a leader."""

import re
from typing import Any
from urllib.parse import unquote

import pytest
from rich.console import Console

from keys.model.records import ProcedureOutcome
from metasrv.cli.cluster.top_view import Look, page
from metasrv_base.errors import Unavailable
from metasrv_base.wire.api.cluster import ClusterBody, NodeBody
from metasrv_base.wire.api.procedures import ProcedureBody
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

CLUSTER: dict[str, Any] = {
    "cluster_id": "c",
    "server_id": "ms-1",
    "leader": {"id": "ms-1", "url": "http://127.0.0.1:4000", "term": 7},
    "metasrvs": [{"id": "ms-1", "url": "http://127.0.0.1:4000", "version": "0", "leads": True}],
    "catalog_version": 42,
    "stale": False,
    "version": "0",
}
NODE: dict[str, Any] = {
    "id": "dn-1",
    "role": "datanode",
    "state": "alive",
    "address": "http://127.0.0.1:5000",
    "zone": "a",
    "root": "/n",
    "version": "0",
    "incarnation": "i",
    "registered_at": "2026-01-01T00:00:00.000Z",
    "phi": 0.1,
    "heard_ms_ago": 300,
    "lease_left_ms": 9_400,
    "cordon": {"reason": "disk", "by": "anna", "at": "2026-01-01T00:00:00.000Z"},
    "resources": None,
    "leads": 3,
    "reported": {"open": 2, "lost": 1},
}
PROCEDURE: dict[str, Any] = {
    "id": "019aa5d3-1c00-7abc-8def-0123456789ab",
    "kind": "failover_table",
    "state": "running",
    "done": False,
    "resource": {"type": "table", "id": "1024", "name": "main.public.flights"},
    "step": "await_lease",
    "progress": None,
    "waiting_for": [
        {
            "kind": "region_lease",
            "holder": "dn-1",
            "since": "2026-01-01T00:00:00.000Z",
            "expires_in_s": 8,
        }
    ],
    "stalled": False,
    "cancelable": False,
    "point_of_no_return": True,
    "allowed_actions": [],
    "attempt": 1,
    "resumed": 0,
    "parent_id": None,
    "children": [],
    "submitted_by": "metasrv",
    "submitted_at": "2026-01-01T00:00:00.000Z",
    "started_at": None,
    "finished_at": None,
    "timeline": [],
    "result": None,
    "error": None,
    "catalog_version": None,
}
SWITCH = {"reason": "disks", "changed_by": "anna", "changed_at": None, "version": 1}


def scripted(rest: Rest) -> None:
    rest.answers["GET", "/v1/cluster"] = (200, CLUSTER)
    maintenance = {"enabled": True, "expires_at": None, **SWITCH}
    rest.answers["GET", "/v1/cluster/maintenance"] = (200, maintenance)
    rest.answers["GET", "/v1/cluster/procedures"] = (200, {"paused": True, **SWITCH})
    rest.answers["GET", "/v1/nodes"] = (200, {"nodes": [NODE]})
    rest.answers["GET", "/v1/procedures"] = (200, {"procedures": [PROCEDURE]})


def test_given_a_cluster_when_looked_at_once_then_leader_leases_regions_and_waits_show(
    run: Run, rest: Rest
) -> None:
    scripted(rest)

    shown = run("top", "--once", "--metasrv", rest.url)

    assert shown.exit_code == 0, shown.output
    lines = [" ".join(line.split()) for line in shown.output.splitlines()]
    assert "leader ms-1 at http://127.0.0.1:4000, term 7 catalog version 42" in lines
    assert "MAINTENANCE: nothing is failed over by detection (disks)" in lines
    assert "PAUSED: no procedure begins a step (disks)" in lines
    assert "dn-1 alive, cordoned a 9.4 s 3 1 lost, 2 open 0.3 s 0.1" in lines
    waits = "main.public.flights running await_lease - region_lease of dn-1, 8 s"
    assert f"{PROCEDURE['id'][:13]} failover_table {waits}" in lines
    (asked,) = [unquote(one.path) for one in rest.asked if one.path.startswith("/v1/procedures")]
    wanted = re.search("state=([a-z_,]+)", asked)
    assert wanted is not None
    assert {"paused", "poisoned", "parked", "queued"} <= set(wanted[1].split(","))
    assert not set(wanted[1].split(",")) & {outcome.value for outcome in ProcedureOutcome}


def test_given_nobody_leads_when_looked_at_then_it_says_so(run: Run, rest: Rest) -> None:
    rest.answers["GET", "/v1/cluster"] = (200, {**CLUSTER, "leader": None})

    shown = run("top", "--once", "--metasrv", rest.url)

    assert shown.exit_code == 0, shown.output
    assert "nobody leads" in shown.output
    assert rest.asked == []


@pytest.mark.usefixtures("impatient")
def test_given_a_leader_that_goes_meanwhile_when_looked_at_then_the_rest_still_shows(
    run: Run, rest: Rest
) -> None:
    scripted(rest)
    rest.answers["GET", "/v1/nodes"] = Unavailable("no-leader")

    shown = run("top", "--once", "--metasrv", rest.url)

    assert shown.exit_code == 0, shown.output
    assert "metasrvs ms-1" in shown.output


def test_given_a_screen_of_80_columns_when_looked_at_then_no_name_and_no_id_is_broken() -> None:
    holder = "019aa5d3-2d00-7abc-8def-0123456789ab"
    waiting = {**PROCEDURE["waiting_for"][0], "kind": "lock", "holder": holder, "key": "table:1024"}
    procedure = ProcedureBody.model_validate({**PROCEDURE, "waiting_for": [waiting]})
    seen = Look(ClusterBody.model_validate(CLUSTER), procedures=[procedure])
    console = Console(width=80)

    with console.capture() as capture:
        console.print(page(seen, console.width))

    words = capture.get().replace(",", " ").split()
    assert {"main.public.flights", "failover_table", "table:1024", holder[:13]} <= set(words)
    assert max(map(len, capture.get().splitlines())) <= 80


def test_given_a_narrow_screen_when_looked_at_then_ids_are_whole() -> None:
    seen = Look(
        ClusterBody.model_validate(CLUSTER),
        nodes=[NodeBody.model_validate(NODE)],
        procedures=[ProcedureBody.model_validate(PROCEDURE)],
    )
    console = Console(width=40)

    with console.capture() as capture:
        console.print(page(seen, console.width))

    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= 40
    assert any(line.startswith("dn-1  alive, cordoned  3") for line in lines)
    assert any(line.startswith("019aa5d3-1c00") for line in lines)
