"""Every kind, crashed at every call of its life: one of its legal ends, and every effect once.

Kind x store call, node call and job x {crash before, applied then crash, answer lost, rival
elected, applied late, request lost, request overtaken, applied in the next term, refused, no space,
paused beyond the lease} x {the same server leads again, another}, on MemoryKv in virtual time; and
pairs of faults. Leases, detector, placement and HttpNodes are the product's; nodes are reached by
encoded requests, and their heartbeats are heard (tests/fakes/wire.py, tests/fakes/heartbeats.py).
The first six are tried whole each time, of a read without the two that leave what another leaves.
In a long life each call dies once, and meets the other five in turn with its neighbour, as the two
leaders take turns. Of the rest one in STRIDE is drawn by seed. A cell that an earlier scenario has
met, at the same line of the same step, is tried once in three. STRIDE=1 in the environment tries
all.
"""

import ast
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random

import pytest
import structlog

from procedures.kinds.registry import KINDS
from tests.crash.enumeration import (
    CORE,
    SECOND_CAME,
    SUCCESSORS,
    Cell,
    cells,
    doubles,
    is_core,
    lived,
)
from tests.crash.side_by_side import side_by_side
from tests.drawn import NEW_SEED, new_seed
from tests.fakes.faults import Call, Mode
from tests.procedures.harness.scenario import Scenario
from tests.procedures.harness.scenarios import SCENARIOS

pytestmark = pytest.mark.crash

ROOT = Path(__file__).parent.parent.parent
SHOWN_MAX = 5
SEED = 1
STRIDE = int(os.environ.get("STRIDE", "12"))
SHORT_LIFE = 130
"""Cells of a life that is tried whole."""
LONG_LIFE = 250
"""Cells of a life whose core is tried in turns."""
LIKE_ANOTHER = (Mode.APPLIED_CRASH, Mode.LOST_REQUEST)
"""Modes left out for a call that only reads: they equal a death before it, or a lost answer."""
MET_BEFORE = min(STRIDE, 3)
"""One cell is tried of this many that an earlier scenario has tried already."""
PAIRS = 120 // STRIDE
"""Lives with two faults, of each scenario."""
NEW_CELLS, NEW_PAIRS = 4, 2
"""Lives of each scenario that are drawn by the new seed, if there is one."""
CELLS_OF = {"read": 12, "job": 18, "order": 19, "commit": 20}
"""Cells of one call of each sort: modes x who leads on. Only grows."""
CALLS = ROOT / "tests" / "golden" / "procedures" / "calls.txt"
"""Every call of every life without faults; so the cells of a life can only fall with its calls,
and which calls they were shows here."""
RARE = {
    "a write of a deposed leader was refused",
    "in doubt, and had been done",
    "in doubt, and had been not done",
    "no space",
    SECOND_CAME,
}
"""States that every kind's lives must reach: of what never happens nothing is shown."""

# Functions that call a port, and yet no life of a procedure passes through them. Each has tests.
NOT_IN_A_LIFE = {
    "scheduling/audit:_is_explained": "once a minute, of no procedure (test_recovery)",
    "scheduling/audit:_look": "only where counts differ (test_recovery)",
    "scheduling/recovery:read_under": "before the term, and once a minute (test_recovery)",
    "commit/committer:_read_head_again": "only where a term begins with a stale read",
    "catalog/log/update_log:look": "a server's own clockwork (test_update_log)",
    "catalog/log/loading:head": "a server's start (tests/keys/catalog/log)",
    "catalog/log/loading:_has_cluster": "a server's start (tests/keys/catalog/log)",
    "catalog/log/revision_pins:take": "a reader of the whole store (test_revision_pins)",
    "catalog/log/revision_pins:renew": "a reader of the whole store (test_revision_pins)",
    "catalog/log/revision_pins:release": "a reader of the whole store (test_revision_pins)",
    "catalog/old_log:_raw": "a read of an old version, which no procedure asks for (test_rebuild)",
    "catalog/snapshot_loading:read_snapshots": "a server's start (test_snapshot_writing)",
    "catalog/snapshot_writing:read": "the leader's own chore (test_snapshot_writing)",
    "catalog/snapshot_writing:_keys": "the leader's own chore (test_snapshot_writing)",
    "catalog/snapshot_writing:_items": "the leader's own chore (test_snapshot_writing)",
    "commit/copying:read_uncopied": "before the term (test_unfinished_versions)",
    "store/measured:txn": "passes on, and counts (test_metrics)",
    "store/measured:range": "passes on, and counts (test_metrics)",
    "store/reads:txn": "passes on, or waits for company (test_reads)",
    "store/reads:range": "passes on (test_reads)",
    "store/reads:_send": "several reads as one (test_reads)",
    "dry_run/overlay_store:txn": "a dry run, which stores nothing (test_plan)",
    "dry_run/overlay_store:range": "a dry run, which stores nothing (test_plan)",
    "commit/log_head:read_log_head": "before the term, so before any procedure runs (test_manager)",
}
PORTS = {"txn", "range", "send", "borrowed", "snapshot", "move", "backfill", "load"}


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    """Thousands of lives would write a book."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    yield
    structlog.reset_defaults()


@cache
def calls_of(name: str) -> tuple[Call, ...]:
    sound = lived(name, None)
    assert sound.wrong == (), "without any fault"
    return sound.calls


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.case("greptime 70", "greptime 75", "greptime 78", "greptime 105", "greptime 106")
@pytest.mark.case("online 58-60")
@pytest.mark.case("greptime 113")
def test_given_a_crash_anywhere_when_led_on_then_a_legal_end_and_each_effect_once(
    scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = calls_of(scenario.name)
    every = list(cells(calls))
    tried = [*samples()[scenario.name], *doubles(calls, PAIRS, f"{SEED} {scenario.name}")]
    tried += drawn_anew(scenario, every, calls)
    rare: Counter[str] = Counter()
    wrong = []
    for cell, found in zip(tried, side_by_side(partial(lived, scenario.name), tried), strict=True):
        rare += found.sometimes
        if found.wrong:
            wrong.append((cell, calls[cell.at], found.wrong))

    with capsys.disabled():
        print(f"\n{scenario.name}: {len(calls)} calls, {len(every)} cells, {seeds()}:", end=" ")
        print(f"{len(tried)} lives, {len(wrong)} wrong; {dict(sorted(rare.items()))}", end="")
    assert wrong[:SHOWN_MAX] == []
    assert rare.keys() >= RARE


def seeds() -> str:
    drawn = new_seed()
    return f"seed {SEED}" if drawn is None else f"seed {SEED} and {NEW_SEED}={drawn}"


def drawn_anew(scenario: Scenario, every: list[Cell], calls: Sequence[Call]) -> list[Cell]:
    """Cells drawn by the new seed of this run, beside those of the fixed seed; none without one."""
    seed = new_seed()
    if seed is None:
        return []
    draw = Random(f"{seed} {scenario.name}")
    single = draw.sample(every, min(NEW_CELLS, len(every)))
    return [*single, *doubles(calls, NEW_PAIRS, f"{seed} {scenario.name}")]


@cache
def samples() -> dict[str, list[Cell]]:
    """The cells that are tried, by scenario."""
    met: set[tuple[object, ...]] = set()
    chosen: dict[str, list[Cell]] = {}
    for scenario in SCENARIOS:
        calls = calls_of(scenario.name)
        every = list(cells(calls))
        draw = Random(f"{SEED} {scenario.name} again")
        firsts = first_of_each_mode(every)
        chosen[scenario.name] = []
        for cell in sample(scenario, every, calls):
            call = calls[cell.at]
            place = (call.port, call.site, call.step, cell.mode, cell.who)
            if place not in met or cell in firsts or draw.randrange(MET_BEFORE) == 0:
                chosen[scenario.name].append(cell)
            met.add(place)
    return chosen


def first_of_each_mode(every: list[Cell]) -> set[Cell]:
    return set({cell.mode: cell for cell in reversed(every)}.values())


def sample(scenario: Scenario, every: list[Cell], calls: Sequence[Call]) -> list[Cell]:
    """The core, the first cell of every mode, and of the rest one in STRIDE, or all of a few."""
    draw = Random(f"{SEED} {scenario.name}")
    stride = STRIDE if len(every) > SHORT_LIFE else 1
    always = first_of_each_mode(every)
    core = [cell for cell in every if is_core(cell) and not is_like_another(cell, calls)]
    always |= {cell for cell in core if len(every) <= LONG_LIFE or is_its_turn(cell)}
    return [cell for cell in every if draw.randrange(stride) == 0 or cell in always]


def is_like_another(cell: Cell, calls: Sequence[Call]) -> bool:
    return cell.mode in LIKE_ANOTHER and not calls[cell.at].writes


def is_its_turn(cell: Cell) -> bool:
    """Calls and modes change leaders in turn, so that every mode meets both."""
    number = (*CORE, Mode.LOST_REQUEST).index(cell.mode)
    is_its_leader = cell.mode is Mode.LOST_REQUEST or cell.who == SUCCESSORS[cell.at // 2 % 2]
    return is_its_leader and (cell.mode is Mode.CRASH_BEFORE or (cell.at + number) % 2 == 0)


def test_given_all_lives_then_their_cells_only_grow(capsys: pytest.CaptureFixture[str]) -> None:
    every = [cell for scenario in SCENARIOS for cell in cells(calls_of(scenario.name))]

    with capsys.disabled():
        print(f"\n{len(every)} cells: {dict(Counter(str(cell.mode) for cell in every))}", end="")
    sorts = Counter(sort_of(call) for one in SCENARIOS for call in calls_of(one.name))
    assert len(every) == sum(CELLS_OF[sort] * times for sort, times in sorts.items())
    assert {cell.mode for cell in every} == set(Mode) - {Mode.NODE_DIES}  # test_node_death


def sort_of(call: Call) -> str:
    if not call.writes:
        return "read"
    if call.port == "kv.txn":
        return "commit"
    return "job" if call.port.startswith("jobs.") else "order"


def test_given_all_lives_then_their_calls_are_those_on_record() -> None:
    made = Counter(
        f"{scenario.name} | {call.port} | {call.site[0]} | {call.step}".rstrip(" |")
        for scenario in SCENARIOS
        for call in calls_of(scenario.name)
    )

    assert [f"{call} x {times}" for call, times in made.items()] == CALLS.read_text().splitlines()


def test_given_the_kinds_then_every_step_of_each_has_cells() -> None:
    tried = {
        step
        for scenario in SCENARIOS
        for call in calls_of(scenario.name)
        for step in call.step.split("; ")
    }
    steps = {f"{name}: {step}" for name, kind in KINDS.items() for step in kind.steps}
    undone = {
        f"{name}: undo {step}"
        for name, kind in KINDS.items()
        for step, row in kind.steps.items()
        if row.undo is not None
    }

    assert (steps | undone) - tried == set()


def test_given_the_code_then_every_place_that_calls_a_port_has_cells() -> None:
    tried = {
        name for scenario in SCENARIOS for call in calls_of(scenario.name) for name in call.site
    }
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
    if file.startswith(("store/etcd", "store/memory", "store/kv")):
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
