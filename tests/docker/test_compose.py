"""docker/compose.yaml against the part of the Compose Specification that it uses.

The models restate its JSON schema (compose-spec/compose-spec, schema/compose-spec.json); a key or a
form that they do not know is added here when it is used.
"""

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from metasrv.host.toolchain import checkout

FILE = checkout() / "docker/compose.yaml"

Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]+$")]
Duration = Annotated[str, StringConstraints(pattern=r"^(\d+(us|ms|s|m|h))+$")]
Port = Annotated[str, StringConstraints(pattern=r"^127\.0\.0\.1:\d{4,5}:\d{4,5}$")]
"""Host address, host port and container port. Nothing is published beyond this machine."""
Mount = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+:/[a-z/]+(:ro)?$")]
"""A named volume, a path in the container, and how it is mounted."""
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")]
Text = Annotated[str, StringConstraints(min_length=1)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Build(Part):
    context: Text
    dockerfile: Text


class Dependency(Part):
    condition: Literal["service_started", "service_healthy", "service_completed_successfully"]


class HealthCheck(Part):
    test: Annotated[list[Text], Field(min_length=2)]
    interval: Duration
    timeout: Duration
    start_period: Duration


class Service(Part):
    image: Text
    build: Build | None = None
    command: list[Text] | None = None
    entrypoint: list[Text] | None = None
    environment: dict[Variable, Text] = {}
    ports: list[Port] = []
    volumes: list[Mount] = []
    depends_on: dict[Name, Dependency] = {}
    restart: Literal["no", "always", "on-failure", "unless-stopped"]
    healthcheck: HealthCheck | None = None


class Compose(Part):
    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    services: dict[Name, Service]
    volumes: dict[Name, None]


def document() -> dict[str, Any]:
    """The file without its extensions, whose content is in the services that refer to it."""
    text: Mapping[str, Any] = yaml.safe_load(FILE.read_text())
    return copy.deepcopy({key: value for key, value in text.items() if not key.startswith("x-")})


@pytest.fixture
def compose() -> Compose:
    return Compose.model_validate(document())


def test_given_the_file_when_validated_then_every_key_and_form_is_of_the_specification(
    compose: Compose,
) -> None:
    assert len(compose.services) > 10


@pytest.mark.parametrize(
    ("service", "key", "value"),
    [
        ("metasrv-1", "port", ["127.0.0.1:4001:4000"]),
        ("metasrv-1", "ports", ["4001-4000"]),
        ("metasrv-1", "ports", ["0.0.0.0:4001:4000"]),
        ("datanode-1", "volumes", ["regions"]),
        ("datanode-1", "volumes", ["regions:regions"]),
        ("datanode-1", "environment", {"METASRV_DATANODE_LISTEN": 5000}),
        ("frontend-1", "restart", False),
        ("frontend-1", "healthcheck", {"test": ["CMD", "true"], "interval": "5 s"}),
        ("frontend-1", "depends_on", {"tokens": {"condition": "healthy"}}),
        ("spark-master", "command", "--port 7077"),
    ],
)
def test_given_a_mistake_when_validated_then_it_is_found(
    service: str, key: str, value: object
) -> None:
    changed = document()
    changed["services"][service][key] = value

    with pytest.raises(ValidationError, match=key):
        Compose.model_validate(changed)


def test_given_the_volumes_when_compared_then_each_that_is_mounted_is_declared_and_no_other(
    compose: Compose,
) -> None:
    mounts = [mount for service in compose.services.values() for mount in service.volumes]

    assert {mount.partition(":")[0] for mount in mounts} == compose.volumes.keys()


def test_given_the_mounts_of_a_service_then_no_two_are_at_one_path(compose: Compose) -> None:
    for name, service in compose.services.items():
        paths = [mount.split(":")[1] for mount in service.volumes]
        assert len(set(paths)) == len(paths), name


def test_given_the_published_ports_then_no_two_services_take_one(compose: Compose) -> None:
    ports = Counter(
        port.rpartition(":")[0] for service in compose.services.values() for port in service.ports
    )

    assert ports.total() == 6
    assert max(ports.values()) == 1


def test_given_dependencies_then_each_is_a_service_and_what_completes_does_not_restart(
    compose: Compose,
) -> None:
    for service in compose.services.values():
        for name, dependency in service.depends_on.items():
            assert name in compose.services
            if dependency.condition == "service_completed_successfully":
                assert compose.services[name].restart == "no"


def test_given_the_programs_of_this_project_then_each_that_listens_has_a_health_check(
    compose: Compose,
) -> None:
    programs = {
        name
        for name, service in compose.services.items()
        if any(variable.endswith("_LISTEN") for variable in service.environment)
    }

    checked = {name for name, service in compose.services.items() if service.healthcheck}
    assert checked == programs
    assert len(programs) == 9
