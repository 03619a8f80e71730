"""House rules that no linter knows. A rule without a check here is a wish; nothing is exempt."""

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from metasrv_base.wire.problem.problems import KINDS

ROOT = Path(__file__).parent.parent
TOPS = (
    "metasrv_base",
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
    r"^\s*(import time\b|from time import)": ("metasrv_base/clock.py",),
    r"\bdatetime\.(now|utcnow|today)\(": ("metasrv_base/clock.py",),
    r"\bdate\.today\(": ("metasrv_base/clock.py",),
    r"\bensure_future\(|\bget_event_loop\(": (),
    r"^\s*(import (aetcd|grpc)\b|from (aetcd|grpc)\b)": (
        "keys/store/etcd*.py",
        "tests/keys/store/test_etcd*",
    ),
    r"^\s*(import pyspark\b|from pyspark\b)": ("dataplane/pipelines/*", "tests/*"),
    r"unittest[.]mock|from unittest import [m]ock": (),
    r"\b(TOD[O]|FIXM[E]|XX[X])\b": (),
    r"(?<![\w.])/(work|home|root|Users)/[a-z]": (),
    r"except\s+Base[E]xception": (),
}
TASK_OWNERS = ("*/main.py", "procedures/scheduling/manager.py")
SLEEPS = re.compile(r"\b(asyncio|time)[.]sleep\((?!0\))")  # of nothing: let others run
LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical"}
EVENT = re.compile(r"[a-z]+(_[a-z0-9]+)*")
EXPORTING = {"metasrv/sdk/__init__.py", "metasrv/dbapi/__init__.py"}  # what users import
KEY_TEXT = re.compile(r"__[a-z]+[/_]")
# What changes metadata -> the modules of the product that make one: all others return a change of
# keys/commit/change.py, whose keys are derived from its log entries.
CHANGE_MAKERS: dict[str, tuple[str, ...]] = {
    "Put": (
        "keys/*",
        "metasrv/leadership/election.py",
        "metasrv/demo/sabotage.py",
        "metasrv/restore/*",
    ),
    "Delete": ("keys/*", "metasrv/leadership/election.py", "metasrv/restore/restore_store.py"),
    "CatalogUpdate": (
        "keys/commit/*",
        "procedures/dry_run/overlay_store.py",
        "metasrv/restore/restore_chunks.py",
    ),
    "writes_of": ("keys/commit/change.py", "keys/commit/bootstrap.py"),
}
TXN_FIELDS = ("keys/commit/txn.py", "keys/commit/change.py")  # make a Txn of writes and entries
LINES_MAX = 400
FUNCTION_LINES_MAX = 60
ERRORS = {"Refused", "NotFound", "Conflict", "NotLeader", "Unavailable", "Unknown", "Corrupt"}


@dataclass(frozen=True)
class Source:
    """One file, parsed and walked once for all rules."""

    path: Path

    @cached_property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def code(self) -> str:
        """The text without comments and docstrings' prose: every line that is not a comment."""
        return "\n".join(re.sub(r"(^|\s)#.*", "", line) for line in self.text.splitlines())

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))


Rule = Callable[[Source], Iterator[str]]


def short(source: Source) -> Iterator[str]:
    """A file and its functions are short."""
    if source.text.count("\n") > LINES_MAX:
        yield f"more than {LINES_MAX} lines"
    for node in source.nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX:
            yield f"{node.name} is too long"


def states_its_idea(source: Source) -> Iterator[str]:
    """A file has a docstring, or is the empty mark of a package."""
    if source.path.name == "__init__.py":
        if source.text and source.name not in EXPORTING:
            yield "a package is empty: import from the module that defines the name"
    elif not ast.get_docstring(source.tree):
        yield "no module docstring"


def words_at_home(source: Source) -> Iterator[str]:
    for word, homes in BANNED.items():
        found = re.search(word, source.code, re.MULTILINE)
        if found is not None and not any(fnmatch(source.name, home) for home in homes):
            yield f"{found[0].strip()!r} belongs in {homes or 'no file'}"


def sleepless(source: Source) -> Iterator[str]:
    """A test does not sleep: it advances a clock, or waits for what it is about."""
    if source.name.startswith("tests/") and SLEEPS.search(source.code):
        yield "a test that sleeps"


def tasks_are_owned(source: Source) -> Iterator[str]:
    """A task is started by a program, or in a `TaskGroup` of the same file (S34)."""
    owners = task_groups(source)
    for call in calls_of(source, "create_task"):
        owned = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in owners
        if not owned and not any(fnmatch(source.name, home) for home in TASK_OWNERS):
            yield f"line {call.lineno}: a task that nothing ends"


def events_are_constant(source: Source) -> Iterator[str]:
    for call in log_calls(source):
        event = call.args[0] if call.args else None
        if not isinstance(event, ast.Constant) or not EVENT.fullmatch(str(event.value)):
            yield f"line {call.lineno}: an event is a constant past-tense phrase"


def keys_are_made_in_keys(source: Source) -> Iterator[str]:
    if source.name.startswith(("keys/", "tests/keys/")):
        return
    made = [node for node in source.nodes if isinstance(node, ast.JoinedStr)]
    for part in (part for node in made for part in node.values):
        if KEY_TEXT.search(str(part.value) if isinstance(part, ast.Constant) else ""):
            yield f"line {part.lineno}: makes a key"


def metadata_changes_by_entries(source: Source) -> Iterator[str]:
    """Nobody writes keys and log side by side: `change` makes both of one list of entries."""
    if source.name.startswith(("tests/", "benchmarks/", "dataplane/", "scripts/")):
        return
    for call in (node for node in source.nodes if isinstance(node, ast.Call)):
        made = last_name(call.func)
        homes = CHANGE_MAKERS.get(made, ("*",))
        if not any(fnmatch(source.name, home) for home in homes):
            yield f"line {call.lineno}: {made} belongs in {homes}"
        given = {keyword.arg for keyword in call.keywords} & {"writes", "entries"}
        makes_txn = made == "Txn" and (given or len(call.args) > 1)
        copies = made == "replace" and given
        if (makes_txn or copies) and source.name not in TXN_FIELDS:
            yield f"line {call.lineno}: a change of metadata that `change` did not make"


def codes_are_known(source: Source) -> Iterator[str]:
    """A problem code that product code raises is in the closed list."""
    if source.name.startswith("tests/"):
        return
    for node in source.nodes:
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
    metadata_changes_by_entries,
    codes_are_known,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.slow
def test_given_every_file_when_a_rule_looks_then_it_finds_nothing(rule: Rule) -> None:
    faults = faults_by_rule()[rule]

    assert not faults, "\n".join(faults)


@cache
def faults_by_rule() -> Mapping[Rule, list[str]]:
    """A file's syntax tree is large: it goes before the next one comes."""
    found: dict[Rule, list[str]] = {rule: [] for rule in RULES}
    for source in map(Source, FILES):
        for rule in RULES:
            found[rule] += (f"{source.name}: {fault}" for fault in rule(source))
    return found


def test_given_the_pins_then_the_locks_hold_them_and_name_no_host() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    run = (ROOT / "requirements.lock").read_text()
    dev = (ROOT / "requirements-dev.lock").read_text()
    programs = [text for extra in extras if extra != "dev" for text in extras[extra]]

    for text in [*project["dependencies"], *programs]:
        assert is_locked(text, run), f"{text}: run `make lock`"
        assert is_locked(text, dev), f"{text}: run `make lock`"
    for text in extras["dev"]:
        assert is_locked(text, dev), f"{text}: run `make lock`"
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links", run + dev)


def is_locked(text: str, lock: str) -> bool:
    """Whether every version of a requirement that a lock has, and one at least, satisfies it."""
    wanted = Requirement(text)
    if wanted.name == "metasrv":
        return True  # its own extras
    versions = re.findall(rf"^{re.escape(wanted.name)}==(\S+) ", lock, re.MULTILINE)
    return bool(versions) and all(wanted.specifier.contains(one) for one in versions)


def calls_of(source: Source, method: str) -> Iterator[ast.Call]:
    for node in source.nodes:
        if isinstance(node, ast.Call) and last_name(node.func) == method:
            yield node


def last_name(called: ast.expr) -> str:
    """`c` of `a.b.c` and of `c`; empty for what has no name."""
    match called:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def task_groups(source: Source) -> set[str]:
    """The names bound by `async with asyncio.TaskGroup() as name`."""
    items = [
        item for node in source.nodes if isinstance(node, ast.AsyncWith) for item in node.items
    ]
    return {
        item.optional_vars.id
        for item in items
        if isinstance(item.optional_vars, ast.Name) and "TaskGroup()" in ast.unparse(item)
    }


def log_calls(source: Source) -> Iterator[ast.Call]:
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            logs = node.func.attr in LOG_METHODS
            if logs and last_name(node.func.value) in {"log", "_log", "logger"}:
                yield node
