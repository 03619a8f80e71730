"""A plan as a tree: what each step makes, waits for and reads, and until when it can be undone."""

import json
from typing import Any

import pytest

from metasrv.cli.plan import lines
from metasrv_base.wire.api.plans import PlanBody
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

TABLES = "/v1/catalogs/main/schemas/public/tables"


def shift(before: str, after: str) -> dict[str, Any]:
    return {"what": "index", "id": 1, "name": "by_a", "before": before, "after": after}


def step(name: str, **more: Any) -> dict[str, Any]:
    return {"step": name, "puts": [], "deletes": [], "log": [], "orders": [], **more}


PLAN: dict[str, Any] = {
    "kind": "create_index",
    "resource": {"type": "table", "id": "1024", "name": "main.public.t"},
    "locks": [{"key": "table:1024", "mode": "exclusive"}],
    "steps": [
        step(
            "advance",
            orders=[{"node": "dn-1", "op": "schema", "region_id": str(n)} for n in range(2)],
            publishes=[
                {
                    "table_id": 1024,
                    "schema_version": 2,
                    "shifts": [shift("absent", "delete-only")],
                }
            ],
            puts=["__table_info/1024"],
        ),
        step(
            "advance",
            drains=[{"table_id": 1024, "schema_version": 2, "holders": ["fe-1", "fe-2"]}],
            eta_s=15,
        ),
        step(
            "fill",
            scans=[{"job": "backfill", "region_id": "7", "rows": 2000000, "bytes": 3 << 20}],
            eta_s=20,
        ),
        step(
            "finish",
            cancellable=False,
            log=["table.altered"],
            edits=[
                {
                    "what": "column",
                    "name": "note",
                    "attribute": "default",
                    "before": None,
                    "after": "none",
                }
            ],
        ),
    ],
    "last_cancellable_step": "fill",
    "blockers": [
        {
            "kind": "schema_lease",
            "holder": "fe-2",
            "waits": True,
            "expires_in_s": 15,
            "transaction": "t-9",
            "transaction_age_ms": 2500,
        }
    ],
    "scan_rows": 2000000,
    "scan_bytes": 3 << 20,
    "eta_s": 35,
    "dry_run": True,
    "catalog_version": 3,
}
TREE = """\
create_index of table main.public.t (1024)
  lock  exclusive table:1024
  step 1: advance
    order schema 2 regions on dn-1
    make  schema version 2 from 1
            index by_a: absent -> delete-only
    put   __table_info/1024
  step 2: advance (about 15 s)
    wait  until none uses schema version 1: fe-1, fe-2
  step 3: fill (about 20 s)
    job   backfill of region 7: 2,000,000 rows, 3 MiB
  -- can be cancelled until step fill commits --
  step 4: finish
    set   default of column note: null -> none
    log   table.altered
  waits for schema_lease fe-2, t-9 open for 2.5 s, at most 15 s
  reads 2,000,000 rows (3 MiB)
  takes about 35 s once Spark has started
"""


def test_given_a_plan_when_shown_then_it_is_a_tree_of_its_steps() -> None:
    plan = PlanBody.model_validate_json(json.dumps(PLAN))

    assert "\n".join(lines(plan)) + "\n" == TREE


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"complete": False}, "does not get to its end as things are now"),
        ({"eta_s": None}, "takes as long as what is in its way"),
        ({"eta_s": 0, "scan_rows": 0}, "how long the nodes take is not known before"),
    ],
)
def test_given_a_plan_of_unknown_length_when_shown_then_it_says_why(
    facts: dict[str, Any], said: str
) -> None:
    plan = PlanBody.model_validate_json(json.dumps({**PLAN, **facts}))

    assert said in list(lines(plan))[-1]


def test_given_the_command_of_a_change_when_explained_then_it_is_planned_and_not_run(
    rest: Rest, run: Run
) -> None:
    rest.answers["POST", f"{TABLES}/t/indexes"] = (200, PLAN)
    words = ("index", "create", "t", "by_a", "--column", "a", "--unique", "--metasrv", rest.url)

    tree = run("explain", *words)
    told = run("explain", *words, "--json")

    assert (tree.exit_code, tree.stdout) == (0, TREE)
    assert json.loads(told.stdout)["steps"][2]["scans"][0]["rows"] == 2_000_000
    assert {one.path for one in rest.asked} == {f"{TABLES}/t/indexes?dry_run=true"}
    assert [one.body["unique"] for one in rest.asked] == [True, True]


def test_given_a_command_that_changes_nothing_when_explained_then_it_has_no_plan(run: Run) -> None:
    done = run("explain", "table", "list")

    assert done.exit_code == 2
    assert "table list changes nothing" in done.output
