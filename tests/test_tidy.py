"""House rules that no linter knows. A rule without a check here is a wish; nothing is exempt."""

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from base.wire.problems import KINDS

ROOT = Path(__file__).parent.parent
TOPS = (
    "base",
    "serving",
    "keys",
    "procedures",
    "metasrv",
    "dataplane",
    "scripts",
    "benchmarks",
    "tests",
)
FILES = sorted(path for top in TOPS for path in (ROOT / top).rglob("*.py"))

# Word -> where alone it may be. An empty tuple: nowhere. No pattern matches its own text.
BANNED: dict[str, tuple[str, ...]] = {
    r"^\s*(import time\b|from time import)": ("base/clock.py",),
    r"\bdatetime\.(now|utcnow|today)\(": ("base/clock.py",),
    r"\bdate\.today\(": ("base/clock.py",),
    r"\bensure_future\(|\bget_event_loop\(": (),
    r"^\s*(import (aetcd|grpc)\b|from (aetcd|grpc)\b)": ("keys/etcd*.py", "tests/keys/test_etcd*"),
    r"^\s*(import pyspark\b|from pyspark\b)": ("dataplane/pipelines/*", "tests/*"),
    r"unittest[.]mock|from unittest import [m]ock": (),
    r"\b(TOD[O]|FIXM[E]|XX[X])\b": (),
    r"(?<![\w.])/(work|home|root|Users)/[a-z]": (),
    r"except\s+Base[E]xception": (),
}
TASK_OWNERS = ("*/main.py", "procedures/manager.py")
SLEEPS = re.compile(r"\b(asyncio|time)[.]sleep\((?!0\))")  # of nothing: let others run
LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical"}
EVENT = re.compile(r"[a-z]+(_[a-z0-9]+)*")
KEY_TEXT = re.compile(r"__[a-z]+[/_]")
LINES_MAX = 400
FUNCTION_LINES_MAX = 60
ERRORS = {"Refused", "NotFound", "Conflict", "NotLeader", "Unavailable", "Unknown", "Corrupt"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def code_of(path: Path) -> str:
    """The text without comments and docstrings' prose: every line that is not a comment."""
    return "\n".join(re.sub(r"(^|\s)#.*", "", line) for line in path.read_text().splitlines())


Rule = Callable[[Path], Iterator[str]]


def short(path: Path) -> Iterator[str]:
    """A file and its functions are short."""
    if path.read_text().count("\n") > LINES_MAX:
        yield f"more than {LINES_MAX} lines"
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX:
            yield f"{node.name} is too long"


def states_its_idea(path: Path) -> Iterator[str]:
    """A file has a docstring, or is the empty mark of a package."""
    if path.name == "__init__.py":
        if path.read_text():
            yield "a package is empty: import from the module that defines the name"
    elif not ast.get_docstring(tree_of(path)):
        yield "no module docstring"


def words_at_home(path: Path) -> Iterator[str]:
    name, code = name_of(path), code_of(path)
    for word, homes in BANNED.items():
        found = re.search(word, code, re.MULTILINE)
        if found is not None and not any(fnmatch(name, home) for home in homes):
            yield f"{found[0].strip()!r} belongs in {homes or 'no file'}"


def sleepless(path: Path) -> Iterator[str]:
    """A test does not sleep: it advances a clock, or waits for what it is about."""
    if path.is_relative_to(ROOT / "tests") and SLEEPS.search(code_of(path)):
        yield "a test that sleeps"


def tasks_are_owned(path: Path) -> Iterator[str]:
    """A task is started by a program, or in a `TaskGroup` of the same file (STYLE 34)."""
    owners = task_groups(tree_of(path))
    for call in calls_of(tree_of(path), "create_task"):
        owned = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in owners
        if not owned and not any(fnmatch(name_of(path), home) for home in TASK_OWNERS):
            yield f"line {call.lineno}: a task that nothing ends"


def events_are_constant(path: Path) -> Iterator[str]:
    for call in log_calls(tree_of(path)):
        event = call.args[0] if call.args else None
        if not isinstance(event, ast.Constant) or not EVENT.fullmatch(str(event.value)):
            yield f"line {call.lineno}: an event is a constant past-tense phrase"


def keys_are_made_in_keys(path: Path) -> Iterator[str]:
    if name_of(path).startswith(("keys/", "tests/keys/")):
        return
    made = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.JoinedStr)]
    for part in (part for node in made for part in node.values):
        if KEY_TEXT.search(str(part.value) if isinstance(part, ast.Constant) else ""):
            yield f"line {part.lineno}: makes a key"


def codes_are_known(path: Path) -> Iterator[str]:
    """A problem code that product code raises is in the closed list."""
    if path.is_relative_to(ROOT / "tests"):
        return
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            code = node.args[0] if node.args and node.func.id in ERRORS else None
            if isinstance(code, ast.Constant) and code.value not in KINDS:
                yield f"line {node.lineno}: {code.value!r} is no problem code"


RULES: tuple[Rule, ...] = (
    short,
    states_its_idea,
    words_at_home,
    sleepless,
    tasks_are_owned,
    events_are_constant,
    keys_are_made_in_keys,
    codes_are_known,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_given_every_file_when_a_rule_looks_then_it_finds_nothing(rule: Rule) -> None:
    faults = [f"{name_of(path)}: {fault}" for path in FILES for fault in rule(path)]

    assert not faults, "\n".join(faults)


def test_given_the_pins_then_the_locks_hold_them_and_name_no_host() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    run = (ROOT / "requirements.lock").read_text()
    dev = (ROOT / "requirements-dev.lock").read_text()

    for pin in [*project["dependencies"], *extras["spark"], *extras["demo"]]:
        assert f"\n{pin} " in f"\n{run}", f"{pin}: run `make lock`"
        assert f"\n{pin} " in f"\n{dev}", f"{pin}: run `make lock`"
    for pin in extras["dev"]:
        assert f"\n{pin} " in f"\n{dev}", f"{pin}: run `make lock`"
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links", run + dev)


def calls_of(tree: ast.Module, method: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == method:
            yield node


def task_groups(tree: ast.Module) -> set[str]:
    """The names bound by `async with asyncio.TaskGroup() as name`."""
    items = [
        item for node in ast.walk(tree) if isinstance(node, ast.AsyncWith) for item in node.items
    ]
    return {
        item.optional_vars.id
        for item in items
        if isinstance(item.optional_vars, ast.Name) and "TaskGroup()" in ast.unparse(item)
    }


def log_calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value).split(".")[-1]
            if node.func.attr in LOG_METHODS and owner in {"log", "_log", "logger"}:
                yield node
