"""`metasrv config` tells every setting of every program, as the programs take it."""

import json
import subprocess
from pathlib import Path

import pytest

from dataplane.datanode.config import DatanodeConfig
from dataplane.frontend.config import FrontendConfig
from metasrv.program.config import ServerConfig
from metasrv_base.settings_list import settings_of
from serving.config import StartConfig
from serving.launch import program
from tests.metasrv.cli.conftest import Run

REQUIRED = {"--server-id", "--data-dir", "--node-id", "--root", "--metasrv", "--frontend-id"}
PROGRAMS: dict[str, type[StartConfig]] = {
    "server": ServerConfig,
    "datanode": DatanodeConfig,
    "frontend": FrontendConfig,
}


@pytest.mark.slow
def test_given_the_models_then_each_setting_is_told_with_its_meaning(run: Run) -> None:
    told = json.loads(run("config", "--format", "json").stdout)

    assert told.keys() == PROGRAMS.keys()
    for name, model in PROGRAMS.items():
        assert len(told[name]) == len(model.model_fields)
        for setting in told[name]:
            assert setting["meaning"], setting
            assert setting["required"] == (setting["flag"] in REQUIRED)
    ttl = next(one for one in told["server"] if one["flag"] == "--leader-ttl-ms")
    assert (ttl["variable"], ttl["default"], ttl["unit"]) == (
        "METASRV_SERVER_LEADER_TTL_MS",
        ServerConfig.model_fields["leader_ttl_ms"].default,
        "ms",
    )


@pytest.mark.slow
def test_given_a_file_and_the_environment_then_values_have_their_source(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = tmp_path / "metasrv.toml"
    toml.write_text('[server]\nrunning_max = 7\nqueue_max = 7\n[datanode]\nzone = "file"\n')
    monkeypatch.setenv("METASRV_SERVER_RUNNING_MAX", "8")
    monkeypatch.setenv("METASRV_DATANODE_LISTEN", "127.0.0.1:7000")

    told = json.loads(run("config", "--format", "json", "--config", str(toml)).stdout)
    broken = run("config", "--config", str(tmp_path / "nowhere"))

    found = {
        one["variable"]: (one["value"], one["source"]) for group in told.values() for one in group
    }
    assert found["METASRV_SERVER_RUNNING_MAX"] == ("8", "environment")
    assert found["METASRV_SERVER_QUEUE_MAX"] == (7, "file")
    assert found["METASRV_SERVER_REPAIR_MAX"] == (32, "default")
    assert found["METASRV_DATANODE_LISTEN"] == ("127.0.0.1:7000", "environment")
    assert found["METASRV_DATANODE_ZONE"] == ("file", "file")
    assert broken.exit_code == 2


def test_given_a_person_then_a_table_of_flags_and_variables(run: Run) -> None:
    text = run("config").stdout

    for word in ("--phi-threshold", "METASRV_DATANODE_ROOT", "(required)", "metasrv datanode"):
        assert word in text


@pytest.mark.slow
def test_given_the_flags_that_are_told_then_the_programs_take_them(run: Run) -> None:
    told = json.loads(run("config", "--format", "json").stdout)

    for name, module in (
        ("server", "metasrv.server.main"),
        ("datanode", "dataplane.datanode.main"),
        ("frontend", "dataplane.frontend.main"),
    ):
        argv = [*program(module), "--help"]
        help_text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        for setting in told[name]:
            assert setting["flag"] in help_text


COMMON = {"listen", "advertise", "tokens_file", "cluster_tokens_file", "token_file", "ready_file"}


def test_given_the_programs_then_what_all_have_is_named_alike_in_flag_variable_and_file() -> None:
    for name, model in PROGRAMS.items():
        told = {one.name: one for one in settings_of(model, model.env_prefix)}
        assert told.keys() >= COMMON
        for setting, one in told.items():
            assert one.flag == "--" + setting.replace("_", "-")
            assert one.variable == f"METASRV_{name.upper()}_{setting.upper()}"


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_given_a_program_when_asked_for_help_then_it_looks_as_that_of_every_command(
    run: Run, name: str
) -> None:
    shown = run(name, "--help", COLUMNS="80")

    assert shown.exit_code == 0
    assert f"Usage: metasrv {name} [OPTIONS]" in shown.stdout
    assert "\u256d\u2500 Options" in shown.stdout
    for one in settings_of(PROGRAMS[name], PROGRAMS[name].env_prefix):
        assert one.flag in shown.stdout
    assert f"METASRV_{name.upper()}_LISTEN" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_given_a_playground_when_its_file_or_variable_is_wrong_then_the_setting_is_named(
    run: Run, tmp_path: Path
) -> None:
    toml = tmp_path / "metasrv.toml"
    toml.write_text("[playground]\ndatanode = 1\n")

    unknown = run("playground", "--config", str(toml), COLUMNS="300")
    wrong = run("playground", METASRV_PLAYGROUND_DATANODES="-1", COLUMNS="300")

    assert (unknown.exit_code, wrong.exit_code) == (2, 2)
    assert "there is no setting datanode; did you mean datanodes?" in unknown.stderr
    assert "--datanodes" in wrong.stderr
