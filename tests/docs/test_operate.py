"""Every WARNING and ERROR event has one page in docs/operate, and its commands exist."""

import ast
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dataplane.datanode.config import DatanodeConfig
from dataplane.frontend.config import FrontendConfig
from keys.store.memory import MemoryKv
from metasrv.api.http.metrics import ServerMetrics
from metasrv.cli.main import COMMANDS, application
from metasrv.program.config import ServerConfig
from tests.metasrv.api.fakes import ShiftedClock
from tests.metasrv.api.rig import state_of

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/operate").glob("*.md"))
ALARMS = [page for page in PAGES if page.name != "README.md"]
TOPS = ("metasrv_base", "keys", "procedures", "metasrv", "dataplane", "serving")
LOUD = frozenset({"warning", "error", "exception", "critical"})
FENCE = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Programs that take their own flags: the command line passes them on.
FLAGS = {
    "server": ServerConfig.model_fields,
    "datanode": DatanodeConfig.model_fields,
    "frontend": FrontendConfig.model_fields,
}


@cache
def loud_events() -> frozenset[str]:
    """Constants in `log.warning("...")` and its like, wherever the product logs."""
    return frozenset(_events_in_code())


def _events_in_code() -> Iterator[str]:
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*.py")):
            text = path.read_text()
            for node in ast.walk(ast.parse(text)) if "log." in text else ():
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    owner = ast.unparse(node.func.value)
                    if owner == "log" and node.func.attr in LOUD:
                        assert isinstance(node.args[0], ast.Constant), path
                        yield str(node.args[0].value)


def events_of(page: Path) -> list[str]:
    (line,) = re.findall(r"^Events: (.*)$", page.read_text(), re.MULTILINE)
    return re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)`", line)


def commands_of(page: Path) -> list[str]:
    return [line for block in FENCE.findall(page.read_text()) for line in block.splitlines()]


def test_given_every_loud_event_when_looked_up_then_exactly_one_page_has_it() -> None:
    told = loud_events()
    paged = Counter(event for page in ALARMS for event in events_of(page))

    assert len(told) > 20
    assert told == set(paged), "without a page, or on a page and never logged"
    assert max(paged.values()) == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_given_a_page_when_read_then_its_commands_exist_with_their_options(page: Path) -> None:
    ours = [line for line in commands_of(page) if line.startswith("metasrv ")]

    assert ours, "a page names the command that mends it"
    assert [fault for line in ours for fault in faults(line)] == []
    assert all(line.startswith(("metasrv ", "etcdctl ")) for line in commands_of(page))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("metasrv nothing", "nothing"),
        ("metasrv node nothing", "nothing"),
        ("metasrv node list --surprise", "--surprise"),
        ("metasrv server --surprise 1", "--surprise"),
    ],
)
def test_given_a_command_that_does_not_exist_when_judged_then_it_is_named(
    line: str, fault: str
) -> None:
    assert any(fault in found for found in faults(line))


def test_given_the_index_when_read_then_it_links_every_page() -> None:
    index = (ROOT / "docs/operate/README.md").read_text()

    assert [page.name for page in ALARMS if f"({page.name})" not in index] == []


def faults(line: str) -> Iterator[str]:
    """Yields the words of *line* that the help of the real command line does not know."""
    _, *words = shlex.split(line)
    options = {word for word in words if word.startswith("--")}
    if words[0] in FLAGS:
        known = {f"--{name.replace('_', '-')}" for name in FLAGS[words[0]]}
        yield from options - known
        return
    if words[0] not in {name for name, _, _ in COMMANDS}:
        yield words[0]
        return
    asked = [*(word for word in words if word not in options), "--help"]
    shown = CliRunner().invoke(application([words[0]]), asked, env={"COLUMNS": "200"})
    if shown.exit_code != 0:
        yield shown.output
        return
    yield from (option for option in options if option not in shown.output)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_given_a_page_when_it_names_a_metric_then_a_program_has_it(page: Path) -> None:
    named = set(re.findall(r"`(metasrv_[a-z_]+)`", page.read_text())) - loud_events()

    assert {re.sub(r"_(count|bucket|sum)$", "", name) for name in named} <= metrics()


@cache
def metrics() -> frozenset[str]:
    clock = ShiftedClock()
    state = state_of("ms-1", MemoryKv(clock), clock)
    ours = ServerMetrics().text(state).decode()
    return frozenset(re.findall(r"^# TYPE (\w+) ", ours, re.MULTILINE))
