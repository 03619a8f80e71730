"""`metasrv doctor` names what is missing, and the line that mends it."""

import json
from pathlib import Path

import pytest

from metasrv.cli.main import COMMANDS, application, main
from metasrv.cli.tools.doctor import SET_UP, command_finding, tool_finding
from metasrv.host.toolchain import Tool


def test_given_no_tool_when_judged_then_the_fix_installs_it_and_sets_up() -> None:
    found = tool_finding("etcd", None, "apt-get install etcd-server")

    assert (found.state, found.fix) == ("missing", f"apt-get install etcd-server && {SET_UP}")


def test_given_a_chosen_tool_that_is_gone_when_judged_then_set_up_mends_it(tmp_path: Path) -> None:
    gone = Tool(str(tmp_path / "etcd"), "3.4.23", "PATH", "from PATH")

    found = tool_finding("etcd", gone, "apt-get install etcd-server")

    assert (found.state, found.fix) == ("missing", SET_UP)


def test_given_a_tool_with_a_warning_when_judged_then_it_is_shown() -> None:
    weak = Tool("/bin/sh", "3.5.1", "the wheel", "from the wheel", "may lose data when killed")

    found = tool_finding("etcd", weak, "apt-get install etcd-server")

    assert found.state == "warning"
    assert "may lose data when killed" in found.said


def test_given_no_jq_when_judged_then_the_pages_that_need_it_are_named() -> None:
    absent = command_finding("jq", None, "docs/tutorial.md needs it")
    there = command_finding("jq", "/usr/bin/jq", "docs/tutorial.md needs it")

    assert (absent.state, absent.fix) == ("warning", "apt-get install jq")
    assert "docs/tutorial.md needs it" in absent.said
    assert (there.state, there.said) == ("ok", "/usr/bin/jq")


def test_given_json_when_doctor_is_asked_then_every_finding_has_a_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "--json", "--root", str(tmp_path)])

    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {one["state"] for one in findings} <= {"ok", "warning", "missing"}
    assert {"python", "pyspark", "jq", "curl", "localhost", "disk"} <= {
        one["name"] for one in findings
    }


def test_given_help_when_asked_then_every_command_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])

    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name, _, _ in COMMANDS)


def test_given_the_commands_when_all_are_wanted_then_each_module_has_one() -> None:
    names = [name for name, _, _ in COMMANDS]

    application(names)

    assert len(names) == len(set(names))
