"""docker/: nothing here can start it, so each name in it is held against what it names."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from typer.testing import CliRunner

from dataplane.datanode.config import DatanodeConfig
from dataplane.frontend.config import FrontendConfig
from metasrv.cli.main import application
from metasrv.cli.tools.config import of_server
from metasrv.host.toolchain import checkout, read_toolchain
from metasrv.program.config import ServerConfig
from metasrv_base.settings_list import SettingFlag, settings_of
from metasrv_base.token import line_of, new_token, read_tokens
from tests.dataplane.pipelines.standalone import MASTER, WORKER

ROOT = checkout()
SERVICES: Mapping[str, Any] = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text()
PORTS = {"metasrv": 4000, "datanode": 5000, "frontend": 6000, "etcd": 2379, "spark-master": 7077}
PEER_PORT = 2380


def of_role(role: str) -> list[str]:
    return [name for name in SERVICES if re.fullmatch(rf"{role}-\d", name)]


def named(service: Mapping[str, Any], settings: list[SettingFlag]) -> dict[str, str]:
    """Returns the values of its flags and variables, by setting. Fails for one that is none."""
    by_flag = {one.flag: one for one in settings}
    variables = {one.variable: one for one in settings}
    said = dict(word.split("=", 1) for word in service["command"][1:])
    said |= {variables[name].flag: value for name, value in service["environment"].items()}
    return {by_flag[flag].flag[2:].replace("-", "_"): value for flag, value in said.items()}


@pytest.fixture
def secrets(tmp_path: Path) -> Mapping[str, str]:
    """The files that the service `tokens` would have made."""
    token = new_token()
    files = {
        "token_file": token,
        "tokens_file": line_of("operator", new_token()),
        "cluster_tokens_file": line_of("metasrv", token),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
        (tmp_path / name).chmod(0o600)
    return {name: str(tmp_path / name) for name in files}


def test_given_three_of_each_when_counted_then_they_are_there() -> None:
    roles = ("etcd", "metasrv", "datanode", "frontend")
    assert [len(of_role(role)) for role in roles] == [3, 3, 3, 3]
    assert len(of_role("spark-worker")) == 2


@pytest.mark.parametrize("name", of_role("metasrv"))
def test_given_a_server_when_its_settings_are_read_then_it_would_start(
    name: str, secrets: Mapping[str, str]
) -> None:
    said = named(SERVICES[name], of_server()) | dict(secrets)

    config = ServerConfig.read(said, {}, None)

    assert (config.server_id, config.advertise, config.spark_driver_host) == (name,) * 3
    assert config.port == PORTS["metasrv"]
    assert SERVICES[name]["command"][0] == "server"
    assert SERVICES[name]["ports"][0].endswith(f":{config.port}")
    assert [urlsplit(url).hostname for url in config.etcd] == of_role("etcd")


@pytest.mark.parametrize("name", of_role("datanode"))
def test_given_a_datanode_when_its_settings_are_read_then_it_would_start(
    name: str, secrets: Mapping[str, str]
) -> None:
    service = SERVICES[name]
    said = named(service, settings_of(DatanodeConfig, DatanodeConfig.env_prefix)) | dict(secrets)

    config = DatanodeConfig.read(said, {}, None)

    assert (config.advertise, config.port) == (name, PORTS["datanode"])
    assert service["command"][0] == "datanode"
    assert [urlsplit(url).hostname for url in config.metasrv_urls] == of_role("metasrv")
    (volume,) = (one for one in service["volumes"] if one.startswith("regions:"))
    assert config.root.startswith(volume.partition(":")[2] + "/")
    assert all(volume in SERVICES[worker]["volumes"] for worker in of_role("spark-worker"))


def test_given_the_datanodes_when_their_zones_are_read_then_no_two_share_one() -> None:
    settings = settings_of(DatanodeConfig, DatanodeConfig.env_prefix)

    zones = {named(SERVICES[name], settings)["zone"] for name in of_role("datanode")}

    assert len(zones) == len(of_role("datanode"))


@pytest.mark.parametrize("name", of_role("frontend"))
def test_given_a_frontend_when_its_settings_are_read_then_it_would_start(
    name: str, secrets: Mapping[str, str]
) -> None:
    service = SERVICES[name]
    said = named(service, settings_of(FrontendConfig, FrontendConfig.env_prefix)) | dict(secrets)

    config = FrontendConfig.read(said, {}, None)

    assert (config.advertise, config.port) == (name, PORTS["frontend"])
    assert config.frontend_id == f"fe-{name[-1]}"
    assert service["command"][0] == "frontend"
    assert service["ports"][0].endswith(f":{config.port}")
    assert [urlsplit(url).hostname for url in config.metasrv_urls] == of_role("metasrv")


@pytest.mark.parametrize(
    ("role", "document"), [("metasrv", "metasrv"), ("datanode", "node"), ("frontend", "frontend")]
)
def test_given_a_health_check_when_looked_up_then_its_program_has_that_route(
    role: str, document: str
) -> None:
    routes = json.loads((ROOT / f"openapi/{document}.v1.json").read_text())["paths"]

    for name in of_role(role):
        url = urlsplit(SERVICES[name]["healthcheck"]["test"][-1])
        assert url.port == PORTS[role]
        assert "get" in routes[url.path]


@pytest.mark.parametrize(("role", "holder"), [("datanode", "dn"), ("frontend", "fe")])
def test_given_a_program_when_its_token_is_looked_up_then_the_service_tokens_makes_it(
    role: str, holder: str
) -> None:
    (script,) = SERVICES["tokens"]["command"]
    holders = script.partition(";")[0].split()

    for name in of_role(role):
        assert f"--token-file=/etc/metasrv/{holder}-{name[-1]}" in SERVICES[name]["command"]
        assert f"{holder}-{name[-1]}" in holders


def test_given_every_url_when_looked_up_then_that_service_listens_there() -> None:
    text = "\n".join(str(service) for service in SERVICES.values())
    places = set(re.findall(r"[a-z]+://([a-z0-9.-]+):(\d+)", text))

    for host, port in places:
        role = host if host in PORTS else re.sub(r"-\d$", "", host)
        assert host in SERVICES or host in ("127.0.0.1", "0.0.0.0"), host
        assert int(port) in (PORTS.get(role), PEER_PORT, *PORTS.values()), (host, port)
    assert len(places) > 10


def test_given_the_commands_of_spark_when_compared_then_they_are_those_that_are_tested() -> None:
    entry = ["tini", "--", "spark-class"]

    assert SERVICES["spark-master"]["entrypoint"] == [*entry, MASTER]
    for worker in of_role("spark-worker"):
        assert SERVICES[worker]["entrypoint"] == [*entry, WORKER]
        assert SERVICES[worker]["command"][-1] == "spark://spark-master:7077"


def test_given_the_command_that_makes_tokens_when_run_twice_then_each_has_one(
    tmp_path: Path,
) -> None:
    (script,) = SERVICES["tokens"]["command"]
    told = 'metasrv() { echo "$@"; }; ' + script.replace("/etc/metasrv", str(tmp_path))
    told = told.replace("$$", "$")

    def made() -> list[str]:
        """The commands that it gives now."""
        done = subprocess.run(["/bin/sh", "-c", told], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    for command in made():
        done = CliRunner().invoke(application(["token"]), command.split())
        assert done.exit_code == 0, done.output

    assert made() == []
    assert set(read_tokens(tmp_path / "tokens").holders.values()) == {"operator"}
    nodes = {f"{role}-{number}" for role in ("dn", "fe") for number in (1, 2, 3)}
    programs = {"metasrv", *nodes}
    assert set(read_tokens(tmp_path / "cluster_tokens").holders.values()) == programs
    files = {"tokens", "cluster_tokens", "operator", *programs}
    assert {path.name for path in tmp_path.iterdir()} == files


def test_given_the_dockerfile_when_read_then_what_it_copies_is_there_and_it_is_not_root() -> None:
    copied = [line.split()[1:-1] for line in re.findall(r"^COPY (?!--from).*", DOCKERFILE, re.M)]
    allowed = set((ROOT / ".dockerignore").read_text().split())
    packages = set(re.findall(r'"(\w+)\*"', (ROOT / "pyproject.toml").read_text()))

    names = {name for names in copied for name in names}
    assert all((ROOT / name).exists() and f"!{name}" in allowed for name in names)
    assert packages <= names
    assert re.findall(r"^USER (\w+)", DOCKERFILE, re.M) == ["10001"]


@pytest.mark.etcd
def test_given_the_variables_of_etcd_when_looked_up_then_it_knows_them() -> None:
    toolchain = read_toolchain(ROOT)
    assert toolchain is not None
    assert toolchain.etcd is not None
    told = subprocess.run([toolchain.etcd.path, "--help"], capture_output=True, text=True)
    flags = set(re.findall(r"--([a-z-]+)", told.stdout + told.stderr))

    for name in of_role("etcd"):
        said = {
            variable.removeprefix("ETCD_").lower().replace("_", "-")
            for variable in SERVICES[name]["environment"]
        }
        assert said <= flags
        assert SERVICES[name]["environment"]["ETCD_NAME"] == name
