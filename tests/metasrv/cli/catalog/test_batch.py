"""`metasrv batch FILE`: the forms of a file, and where in it a fault is."""

import json
from pathlib import Path

import pytest

from metasrv_base.errors import Refused
from metasrv_base.wire.problem.problems import FieldError
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

DROP = {"drop_table": {"catalog": "main", "schema": "public", "table": "t", "if_exists": True}}
MAKE = {"create_catalog": {"name": "acme"}}
DONE = {"applied": [True, False], "catalog_version": 7}


@pytest.mark.parametrize(
    "text",
    [
        f"{json.dumps(MAKE)}\n\n{json.dumps(DROP)}\n",
        json.dumps([MAKE, DROP], indent=2),
        json.dumps({"commands": [MAKE, DROP]}),
    ],
    ids=["lines", "list", "object"],
)
def test_given_commands_in_any_form_when_run_then_one_request_has_them_all(
    text: str, run: Run, rest: Rest, tmp_path: Path
) -> None:
    rest.answers[("POST", "/v1/batch")] = (200, DONE)
    file = tmp_path / "commands.json"
    file.write_text(text)

    done = run("batch", str(file), "--metasrv", rest.url)

    assert done.exit_code == 0, done.output
    assert done.stdout == "1 of 2 commands changed something, at version 7\n"
    (asked,) = rest.asked
    assert asked.body == {"commands": [MAKE, DROP]}


def test_given_a_fault_in_a_line_then_its_line_is_named(
    run: Run, rest: Rest, tmp_path: Path
) -> None:
    fault = FieldError(pointer="/commands/1/drop_table/table", detail="a value is needed")
    rest.answers[("POST", "/v1/batch")] = Refused("invalid-request", errors=(fault,))
    file = tmp_path / "commands.jsonl"
    file.write_text(f"{json.dumps(MAKE)}\n{json.dumps(DROP)}\n")

    refused = run("batch", str(file), "--metasrv", rest.url)

    assert refused.exit_code == 1
    assert "commands.jsonl:2: commands[1].drop_table.table" in refused.output


@pytest.mark.parametrize("text", ["", "3", "{", '{"a": 1}\n{', '{"commands": 3}'])
def test_given_a_file_that_holds_no_commands_then_nothing_is_sent(
    text: str, run: Run, rest: Rest, tmp_path: Path
) -> None:
    file = tmp_path / "commands.json"
    file.write_text(text)

    refused = run("batch", str(file), "--metasrv", rest.url)

    assert refused.exit_code == 2
    assert str(file.name) in refused.output.replace("\n", "").replace("│", "").replace(" ", "")
    assert rest.asked == []
