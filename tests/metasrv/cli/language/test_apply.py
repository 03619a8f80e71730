"""`metasrv apply`, `diff` and `export`: what is shown, and the exit codes."""

from pathlib import Path
from typing import Any

import pytest

from metasrv_base.errors import Refused
from metasrv_base.wire.problem.problems import FieldError
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

PATH = ("POST", "/v1/apply")
DROP = {
    "what": "table",
    "name": "main.public.t",
    "text": "drop column a",
    "destructive": "its values are deleted",
    "command": {
        "alter_table": {
            "catalog": "main",
            "schema": "public",
            "table": "t",
            "operations": [{"op": "drop_column", "name": "a"}],
        }
    },
}
PLAN: dict[str, Any] = {"operations": [DROP], "plan_hash": "f" * 64, "catalog_version": 7}
NOTHING = {**PLAN, "operations": []}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "x.yaml"
    path.write_text("catalogs:\n- name: main\n  schemas:\n  - name: public\n")
    return str(path)


def test_given_a_difference_when_diff_is_run_then_it_is_shown_and_the_exit_code_is_two(
    run: Run, rest: Rest, file: str
) -> None:
    rest.answers[PATH] = (200, PLAN)

    done = run("diff", file, "--metasrv", rest.url)

    assert done.exit_code == 2, done.output
    assert done.stdout == (
        "table main.public.t\n"
        "  - drop column a  destructive: its values are deleted\n"
        "1 operation, 1 of them destructive\n"
        f"plan hash: {'f' * 64}\n"
    )
    assert rest.asked[0].body["mode"] == "plan"


def test_given_no_difference_when_diff_is_run_then_the_exit_code_is_nought(
    run: Run, rest: Rest, file: str
) -> None:
    rest.answers[PATH] = (200, NOTHING)

    done = run("diff", file, "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert done.stdout == "no difference: the catalog is as declared\n"


def test_given_a_refusal_or_no_service_when_diff_is_run_then_the_exit_code_is_one(
    run: Run, rest: Rest, file: str
) -> None:
    error = FieldError(pointer="/catalogs/0/schemas/0/name", code="not-in-place", detail="it stays")
    rest.answers[PATH] = Refused("not-in-place", errors=(error,))

    refused = run("diff", file, "--metasrv", rest.url)

    assert refused.exit_code == 1
    assert f"{file}:4:11" in refused.output
    assert "it stays" in refused.output
    assert run("diff", file, "--metasrv", "http://127.0.0.1:9").exit_code == 1
    assert run("diff", f"{file}.sql", "--metasrv", rest.url).exit_code == 1


def test_given_a_plan_when_apply_is_run_then_its_digest_is_sent(
    run: Run, rest: Rest, file: str
) -> None:
    rest.answers[PATH] = (200, {**PLAN, "steps": [{"operations": 1, "catalog_version": 8}]})

    done = run("apply", file, "--allow-destructive", "--prune", "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert done.stdout.endswith("done in 1 step, at version 7\n")
    asked = rest.asked[-1].body
    assert (asked["mode"], asked["plan_hash"]) == ("apply", "f" * 64)
    assert (asked["prune"], asked["allow_destructive"]) == (True, True)


def test_given_definitions_when_exported_then_they_are_yaml_without_defaults(
    run: Run, rest: Rest
) -> None:
    column = {"name": "id", "type": "int64", "nullable": False}
    table = {"name": "t", "columns": [column], "primary_key": ["id"], "options": {}}
    schema = {"name": "public", "options": {}, "tables": [table]}
    state = {"placements": [], "catalogs": [{"name": "main", "schemas": [schema]}]}
    rest.answers[("GET", "/v1/export")] = (200, state)

    done = run("export", "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert done.stdout == (
        "catalogs:\n- name: main\n  schemas:\n  - name: public\n    options: {}\n    tables:\n"
        "    - name: t\n      primary_key:\n      - id\n      columns:\n      - name: id\n"
        "        type: int64\n        nullable: false\n"
    )
