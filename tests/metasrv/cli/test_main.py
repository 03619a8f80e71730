"""Requests and output of commands, and the exit codes that scripts rely on."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from metasrv.cli.main import COMMANDS
from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable
from metasrv_base.wire.problem.problems import FieldError
from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest
from tests.metasrv.sdk.samples import small
from tests.metasrv.sdk.shapes import procedure, table_of

GROUPS = {
    "table": ("create", "get", "list", "rename", "alter", "drop", "undrop", "route"),
    "index": ("create", "get", "list", "drop"),
    "catalog": ("create", "get", "list", "drop"),
    "schema": ("create", "get", "list", "drop"),
    "procedure": ("list", "get", "watch", "cancel"),
    "node": ("list", "get"),
    "region": ("list", "get"),
    "failover": ("run", "list"),
    "cluster": ("get", "maintenance"),
    "import": (),
    "scan": (),
    "count": (),
    "playground": (),
}


def table_body() -> dict[str, object]:
    return table_of(small()).model_dump(mode="json")


@pytest.mark.parametrize(
    "words",
    [[group, *sub] for group, subs in GROUPS.items() for sub in ([[one] for one in subs] or [[]])],
    ids=" ".join,
)
def test_given_help_when_asked_then_every_command_has_it_and_json(
    run: Run, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    shown = run(*words, "--help")

    assert shown.exit_code == 0
    assert "--json" in shown.output
    assert "…" not in shown.output, "a name is cut"


def test_given_a_command_with_more_to_say_when_asked_for_help_then_all_of_it_shows(
    run: Run,
) -> None:
    shown = run("diff", "--help")

    assert "Exit 2: there are some." in shown.output


def test_given_the_commands_then_those_of_the_service_are_among_them() -> None:
    assert GROUPS.keys() < {name for name, _, _ in COMMANDS}


@pytest.mark.parametrize(
    "words",
    [
        ["table", "list"],
        ["table", "list", "--metasrv", "ftp://x"],
        ["table", "create"],
        ["table", "create", "t", "--metasrv", "http://127.0.0.1:1"],
        ["table", "create", "t", "--column", "id", "--key", "id"],
        ["table", "create", "--file", "nowhere.json"],
        ["table", "alter", "t"],
        ["table", "alter", "t", "--rename-column", "a"],
        ["table", "alter", "t", "--set-option", "ttl"],
        ["failover", "run"],
        ["failover", "run", "dn-1", "--region", "1"],
        ["import", "t", "f.csv", "--create"],
        ["import", "t", "f.csv", "--key", "id"],
        ["import", "t", "f.parquet", "--bulk", "--insert"],
        ["cluster", "maintenance", "maybe"],
        ["playground", "--metasrvs", "0"],
        ["playground", "--frontends", "17"],
        ["playground", "--etcd", "http://127.0.0.1:2379", "--reset"],
    ],
    ids=" ".join,
)
def test_given_a_command_that_makes_no_sense_then_the_exit_code_is_2(
    run: Run, words: list[str]
) -> None:
    assert run(*words).exit_code == 2


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Conflict("already-exists", what="table", name="t"), "table t exists already."),
        (Conflict("object-locked", procedure_id="p-1"), "metasrv procedure get p-1"),
        (Unavailable("region-lost", region_id="7"), "restore its storage"),
        (Unavailable("no-leader"), "an election takes a few seconds"),
        (
            Refused(errors=(FieldError(pointer="/columns/0/type", detail="no type"),)),
            "columns[0].type: no type",
        ),
    ],
    ids=repr,
)
def test_given_a_refusal_then_the_exit_code_is_1_and_it_is_said_for_people(
    run: Run, rest: Rest, error: MetaError, said: str
) -> None:
    rest.answers[("DELETE", f"{TABLES}/t")] = error

    shown = run("table", "drop", "t", "--metasrv", rest.url)

    assert shown.exit_code == 1
    assert said in shown.stderr
    assert f"({error.code})" in shown.stderr


def test_given_json_when_refused_then_the_problem_is_on_stderr(run: Run, rest: Rest) -> None:
    rest.answers[("GET", f"{TABLES}/t")] = Conflict("stale-epoch")

    shown = run("table", "get", "t", "--json", METASRV_URL=rest.url)

    assert (shown.exit_code, shown.stdout) == (1, "")
    assert json.loads(shown.stderr)["code"] == "stale-epoch"


def test_given_flags_when_a_table_is_created_then_the_spec_is_what_they_say(
    run: Run, rest: Rest
) -> None:
    rest.answers[("POST", "/v1/catalogs/main/schemas/s/tables")] = (201, table_body())
    flags = ["--column", "id:int64", "--column", "price:decimal(10,2)", "--column", "note:string!"]

    shown = run(
        *["table", "create", "s.t", *flags, "--primary-key", "id", "--partitions", "4"],
        *["--option", "app.x=30d", "--metasrv", rest.url],
    )

    assert shown.exit_code == 0, shown.output
    (asked,) = rest.asked
    assert [(one["name"], one["type"], one["nullable"]) for one in asked.body["columns"]] == [
        ("id", "int64", False),
        ("price", "decimal(10,2)", True),
        ("note", "string", False),
    ]
    assert asked.body["partition"] == {"by": "hash", "columns": ["id"], "count": 4}
    assert asked.body["options"] == {"app.x": "30d"}


def test_given_a_file_when_a_table_is_created_then_it_is_sent(
    run: Run, rest: Rest, tmp_path: Path
) -> None:
    rest.answers[("POST", TABLES)] = (201, table_body())
    (tmp_path / "t.json").write_text(small().model_dump_json())

    shown = run(
        *["table", "create", "--file", str(tmp_path / "t.json"), "--if-not-exists"],
        *["--metasrv", rest.url, "--json"],
    )

    assert json.loads(shown.stdout)["name"] == "t"
    assert rest.asked[0].body == {**small().model_dump(mode="json"), "if_not_exists": True}


def test_given_alterations_when_sent_then_they_are_one_request_in_order(
    run: Run, rest: Rest
) -> None:
    rest.answers[("POST", f"{TABLES}/t/alter")] = (200, table_body())
    flags = ["--set-option", "app.x=1d", "--unset-option", "x", "--rename-column", "a:b"]

    shown = run("table", "alter", "t", *flags, "--metasrv", rest.url)

    assert shown.exit_code == 0, shown.output
    assert rest.asked[0].body["operations"] == [
        {"op": "rename_column", "name": "a", "new_name": "b"},
        {"op": "set_options", "options": {"app.x": "1d", "x": None}},
    ]


def test_given_an_index_when_made_looked_at_and_dropped_then_each_is_one_request(
    run: Run, rest: Rest
) -> None:
    path = f"{TABLES}/t/indexes"
    index = {"id": 1, "name": "i", "columns": ["b", "a"], "unique": True, "state": "public"}
    rest.answers[("POST", path)] = (201, index)
    rest.answers[("GET", path)] = (200, {"indexes": [index], "catalog_version": 7})
    rest.answers[("DELETE", f"{path}/i")] = (204, None)
    at = ["--metasrv", rest.url]

    made = run("index", "create", "t", "i", "--column", "b", "--column", "a", "--unique", *at)
    listed = run("index", "list", "t", "--json", *at)
    gone = run("index", "drop", "t", "i", *at)

    assert [one.exit_code for one in (made, listed, gone)] == [0, 0, 0], made.output + gone.output
    asked = {"name": "i", "columns": ["b", "a"], "unique": True}
    assert rest.asked[0].body == {**asked, "if_not_exists": False, "not_valid": False}
    assert json.loads(listed.stdout) == [{**index, "coverage": None, "duplicates": None}]
    assert [one.method for one in rest.asked] == ["POST", "GET", "DELETE"]


def test_given_a_truncate_that_nobody_confirms_then_nothing_is_sent(run: Run, rest: Rest) -> None:
    rest.answers[("POST", f"{TABLES}/t/truncate")] = (200, table_body())

    asked = run("table", "truncate", "t", "--metasrv", rest.url)
    sure = run("table", "truncate", "t", "--yes", "--metasrv", rest.url)

    assert (asked.exit_code, sure.exit_code) == (2, 0)
    assert "All rows of t go, for good" in asked.stderr
    assert "--yes" in asked.stderr
    assert [one.path for one in rest.asked] == [f"{TABLES}/t/truncate"]


def test_given_filters_when_procedures_are_listed_then_those_alone_are_asked_for(
    run: Run, rest: Rest
) -> None:
    listed = {"procedures": [procedure(id="p", kind="drop_table")], "next_page_token": None}
    rest.answers[("GET", "/v1/procedures")] = (200, listed)
    day = "2013-01-31T00:00:00Z"

    plain = run("procedure", "list", "--metasrv", rest.url)
    shown = run(
        *["procedure", "list", "--state", "running,waiting", "--resource", "table:1024"],
        *["--since", day, "--until", day, "--moving", "--metasrv", rest.url, "--json"],
    )

    assert (plain.exit_code, shown.exit_code) == (0, 0), shown.output
    asked = [parse_qs(one.path.partition("?")[2]) for one in rest.asked]
    sizes = [one.pop("page_size") for one in asked]
    assert sizes == [["50"], ["50"]]
    assert asked == [
        {},
        {
            "state": ["running,waiting"],
            "resource": ["table:1024"],
            "since": [day],
            "until": [day],
            "stalled": ["false"],
        },
    ]


@pytest.mark.parametrize(
    ("word", "body", "said"),
    [
        ("catalog", {"id": 2, "name": "c"}, "c created: id 2"),
        ("schema", {"id": 3, "catalog": "main", "name": "c"}, "main.c created: id 3"),
    ],
)
def test_given_a_namespace_when_made_looked_at_and_dropped_then_each_is_asked_for(
    run: Run, rest: Rest, word: str, body: dict[str, Any], said: str
) -> None:
    within = "/v1/catalogs" if word == "catalog" else "/v1/catalogs/main/schemas"
    whole = body | {"options": {}, "created_at": "2013", "catalog_version": 4}
    rest.answers[("POST", within)] = (201, whole)
    rest.answers[("GET", f"{within}/c")] = (200, whole)
    rest.answers[("DELETE", f"{within}/c")] = (204, None)

    made = run(word, "create", "c", "--metasrv", rest.url)
    seen = run(word, "get", "c", "--metasrv", rest.url)
    unsure = run(word, "drop", "c", "--cascade", "--metasrv", rest.url)
    gone = run(word, "drop", "c", "--cascade", "--yes", "--metasrv", rest.url)

    assert (unsure.exit_code, "--yes" in unsure.stderr) == (2, True)
    assert [one.exit_code for one in (made, seen, gone)] == [0, 0, 0], made.output + gone.output
    assert made.stdout.strip() == said
    assert "created_at       2013" in seen.stdout
    assert gone.stdout.strip() == "c dropped"
    methods = [(one.method, one.path.partition("?")[0]) for one in rest.asked]
    assert methods == [("POST", within), ("GET", f"{within}/c"), ("DELETE", f"{within}/c")]
    assert "cascade=true" in rest.asked[-1].path


def test_given_a_procedure_that_failed_when_watched_then_the_exit_code_is_1(
    run: Run, rest: Rest
) -> None:
    error = {"code": "node-not-eligible", "detail": "no node is alive", "facts": {}}
    rest.answers[("GET", "/v1/procedures/p")] = (
        200,
        procedure(id="p", state="failed", done=True, error=error),
    )

    shown = run("procedure", "watch", "p", "--metasrv", rest.url)
    looked = run("procedure", "get", "p", "--metasrv", rest.url)

    assert shown.exit_code == 1
    assert "no node is alive" in shown.stderr
    assert looked.exit_code == 0
    assert "node-not-eligible: no node is alive" in looked.stdout


def test_given_regions_when_failed_over_then_each_procedure_is_followed(
    run: Run, rest: Rest
) -> None:
    done: dict[str, Any] = {"kind": "failover_table", "state": "succeeded", "done": True}
    ended = [procedure(id=id, **done) for id in ("p", "q")]
    rest.answers[("POST", "/v1/failovers")] = (202, {"procedures": ended})
    for one in ended:
        rest.answers[("GET", f"/v1/procedures/{one['id']}")] = (200, one)

    shown = run(
        *["failover", "run", "--region", "7", "--region", "8", "--force"],
        *["--metasrv", rest.url, "--json"],
    )

    assert shown.exit_code == 0, shown.output
    assert rest.asked[0].body["region_ids"] == ["7", "8"]
    assert rest.asked[0].body["force"] is True
    assert [one["id"] for one in json.loads(shown.stdout)] == ["p", "q"]


@pytest.mark.parametrize(("switch", "enabled"), [("on", True), ("off", False)])
def test_given_maintenance_when_switched_then_it_is_sent(
    run: Run, rest: Rest, switch: str, enabled: bool
) -> None:
    body = {"enabled": enabled, "reason": "disks", "changed_by": "me", "changed_at": "2026"}
    body |= {"expires_at": None, "version": 1}
    rest.answers[("PUT", "/v1/cluster/maintenance")] = (200, body)

    shown = run("cluster", "maintenance", switch, "--reason", "disks", "--metasrv", rest.url)

    assert f"maintenance is {switch}" in shown.stdout
    assert rest.asked[0].body == {"enabled": enabled, "reason": "disks", "expires_in_s": None}


PLAN = {
    "kind": "drop_table",
    "resource": {"type": "table", "id": "1024", "name": "main.public.t"},
    "locks": [{"key": "table:1024", "mode": "exclusive"}],
    "steps": [
        {
            "step": "remove",
            "puts": ["__removed-__table_info/1024"],
            "deletes": ["__table_info/1024"],
            "log": ["table.dropped"],
            "orders": [{"node": "dn-1", "op": "close", "region_id": "7"}],
        }
    ],
    "last_cancellable_step": "remove",
    "blockers": [{"kind": "node", "holder": "dn-1", "waits": True}],
    "dry_run": True,
    "catalog_version": 3,
}


def test_given_a_dry_run_then_the_plan_is_shown_and_asked_for(rest: Rest, run: Run) -> None:
    rest.answers["DELETE", f"{TABLES}/t"] = (200, PLAN)

    shown = run("table", "drop", "t", "--dry-run", "--metasrv", rest.url)
    told = run("table", "drop", "t", "--dry-run", "--json", "--metasrv", rest.url)

    assert (shown.exit_code, told.exit_code) == (0, 0)
    assert rest.asked[0].path == f"{TABLES}/t?dry_run=true"
    assert "order close region 7 on dn-1" in shown.output
    assert "waits for node dn-1" in shown.output
    assert json.loads(told.stdout)["steps"][0]["deletes"] == ["__table_info/1024"]


MUTATING = {
    "table": ("create", "rename", "alter", "drop", "undrop"),
    "index": ("create", "drop"),
    "catalog": ("create", "drop"),
    "schema": ("create", "drop"),
    "failover": ("run",),
    "node": ("drain",),
}


@pytest.mark.parametrize(
    "words", [[group, one] for group, subs in MUTATING.items() for one in subs], ids=" ".join
)
def test_given_a_command_that_makes_a_procedure_then_it_can_be_planned(
    run: Run, words: list[str]
) -> None:
    assert "--dry-run" in run(*words, "--help").output
