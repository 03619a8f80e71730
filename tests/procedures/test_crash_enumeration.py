"""Every kind, crashed at every call of its life: one of its legal ends, and every effect once.

3.8 of the core: kind x store call and node call x {crash before, applied then crash, answer lost,
rival elected, applied late, request lost} x {the same server leads again, another}, on MemoryKv in
virtual time.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from base.errors import MetaError
from keys.cluster import LeaderKey
from keys.kv import Request
from keys.records import ProcedureKey
from keys.tables import DatanodeTableKey
from procedures.context import Context
from procedures.kinds.registry import KINDS
from procedures.machine import Goto, Kind, Outcome
from tests.fakes.faults import Call, Mode
from tests.procedures.enumeration import Cell, Harness, cells, life
from tests.procedures.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.crash

ROOT = Path(__file__).parent.parent.parent
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
SHOWN_MAX = 5

# Functions that call a port, and yet no life of a procedure passes through them. Each has tests.
NOT_IN_A_LIFE = {
    "committer:_read_line_again": "only where a term began with a stale read (test_committer)",
    "follower:listen": "a server's own clockwork (test_follower)",
    "line:read_line": "before the term, so before any procedure runs (test_manager)",
}
PORTS = {"txn", "range", "send", "borrowed", "move"}


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    """Thousands of lives would write a book."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    yield
    structlog.reset_defaults()


def calls_of(scenario: Scenario) -> tuple[Call, ...]:
    sound = life(scenario, None)
    assert sound.wrong == (), "without any fault"
    return sound.calls


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_given_a_crash_anywhere_when_led_on_then_a_legal_end_and_each_effect_once(
    scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = calls_of(scenario)
    tried, wrong = 0, []
    for cell in cells(calls):
        tried += 1
        found = life(scenario, cell)
        if found.wrong:
            wrong.append((cell, calls[cell.at], found.wrong))

    with capsys.disabled():
        print(f"\n{scenario.name}: {len(calls)} calls, {tried} cells, {len(wrong)} wrong", end="")
    assert wrong[:SHOWN_MAX] == []
    assert tried >= scenario.cells_min, "cells only grow"


def test_given_the_kinds_then_every_step_of_each_has_cells() -> None:
    tried = {call.step for scenario in SCENARIOS for call in calls_of(scenario)}
    steps = {f"{name}: {step}" for name, kind in KINDS.items() for step in kind.steps}
    undone = {
        f"{name}: undo {step}"
        for name, kind in KINDS.items()
        for step, row in kind.steps.items()
        if row.undo is not None
    }

    assert (steps | undone) - tried == set()


def test_given_the_code_then_every_place_that_calls_a_port_has_cells() -> None:
    tried = {name for scenario in SCENARIOS for call in calls_of(scenario) for name in call.site}
    written = {
        place
        for package in ("procedures", "keys")
        for path in (ROOT / package).rglob("*.py")
        for place in places_of(path, ROOT / package)
    }

    assert written - tried - NOT_IN_A_LIFE.keys() == set()
    assert NOT_IN_A_LIFE.keys() <= written, "a place that is gone"


def places_of(path: Path, package: Path) -> set[str]:
    """`file:function` of every function that calls a port by its name."""
    file = path.relative_to(package).as_posix().removesuffix(".py")
    if file.startswith(("etcd", "memory", "kv")):
        return set()  # the store itself
    return {
        f"{file}:{function.name}"
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.AsyncFunctionDef)
        for call in own_nodes(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        if call.func.attr in PORTS and is_port(ast.unparse(call.func.value))
    }


def own_nodes(function: ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Everything in it, but for functions inside of it: those run under their own names."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef):
            waiting += ast.iter_child_nodes(node)


def is_port(owner: str) -> bool:
    return owner.split(".")[-1].lstrip("_") in {"kv", "nodes", "jobs"}


# ---- planted bugs: a harness that cannot fail proves nothing


def without(refused: Callable[[bytes], bool]) -> Callable[[Request], Request]:
    """Requests that do not compare certain keys."""

    def alter(request: Request) -> Request:
        kept = tuple(compare for compare in request.compares if not refused(compare.key))
        return replace(request, compares=kept) if request.writes else request

    return alter


def is_fence(key: bytes) -> bool:
    return key == bytes(LeaderKey())


def is_record(key: bytes) -> bool:
    start, end = ProcedureKey.under()
    return start <= key < end


def without_index(request: Request) -> Request:
    """A route whose reverse index is forgotten."""
    start, end = DatanodeTableKey.under()
    kept = tuple(write for write in request.writes if not start <= write.key < end)
    return replace(request, writes=kept)


def with_step(kind: str, step: str, **changes: Any) -> dict[str, Kind[Any]]:
    old = KINDS[kind]
    row = replace(old.steps[step], **changes)
    return {**KINDS, kind: replace(old, steps={**old.steps, step: row})}


def discarding_first() -> dict[str, Kind[Any]]:
    """A failover that deletes the old folders before the route has let go of them."""
    steps = KINDS["failover_table"].steps

    async def release(state: Any, at: Context) -> Outcome[Any]:
        await steps["discard"].act(state, at)
        return await steps["release"].act(state, at)

    async def adopt(state: Any, at: Context) -> Outcome[Any]:
        return Goto("move" if state.to_move else "release", state)

    broken = with_step("failover_table", "release", act=release)
    old = broken["failover_table"]
    row = replace(old.steps["adopt"], act=adopt)
    return {**broken, "failover_table": replace(old, steps={**old.steps, "adopt": row})}


PLANTED = {
    "no fence": ("create_table", Harness(alter=without(is_fence))),
    "no compare of the record": (
        "create_table, cancelled as it commits",
        Harness(alter=without(is_record)),
    ),
    "doubt taken for not done": ("rename_table", Harness(takes_unknown_for_not_done=True)),
    "no reverse index": ("create_table", Harness(alter=without_index)),
    "no undo": (
        "create_table, node refuses",
        Harness(kinds=with_step("create_table", "create", undo=None)),
    ),
    "files deleted before they were brought over": (
        "failover_table",
        Harness(kinds=discarding_first()),
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_enumerated_then_it_is_found(
    bug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, harness = PLANTED[bug]
    scenario = BY_NAME[name]

    runs, found = 0, ""
    for cell in (None, *cells(calls_of(scenario))):
        runs, found = runs + 1, found or what_is_wrong(scenario, cell, harness)
        if found:
            break

    with capsys.disabled():
        print(f"\n{bug}: run {runs}: {found[:160]}", end="")
    assert found


def what_is_wrong(scenario: Scenario, cell: Cell | None, harness: Harness) -> str:
    try:
        return "; ".join(life(scenario, cell, harness).wrong)
    except (AssertionError, MetaError, ExceptionGroup) as error:
        return f"the code itself has noticed: {error!r}"


def test_given_the_modes_then_each_is_tried() -> None:
    tried = {cell.mode for cell in cells(calls_of(BY_NAME["create_table"]))}

    assert tried == set(Mode) - {Mode.NODE_DIES}
