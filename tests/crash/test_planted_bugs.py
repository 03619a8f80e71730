"""Planted bugs: a harness that cannot fail proves nothing (docs/guarantees.md, harness, 2).

Each is planted at a seam between a server and its world, never by a switch in the code under test;
the test says which check caught it, and after how many lives.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest
import structlog

from metasrv_base.errors import MetaError
from tests.crash.contention import Contest, contend, contests
from tests.crash.enumeration import Harness, Patch, cells, is_core, life
from tests.crash.planted import (
    ALL_IN_SYNC,
    DEAD_NOT_TOLD,
    FLOOR_NOT_IN_OPEN,
    NO_DELETE_ONLY,
    NO_MAJORITY,
    NO_WRITE_ONLY,
    NOT_DRAINED,
    NOT_LOCKED_AGAIN,
    NOT_OUTWAITED,
    NOT_RESUMED,
    NOT_TOLD,
    RELEASED_IN_FINALLY,
    ComparesFenceByValue,
    RetryingClient,
    SplittingClient,
    StagesLate,
    discarding_first,
    is_fence,
    is_read_set,
    is_record,
    removing_first,
    with_step,
    without,
    without_index,
)
from tests.crash.races import race
from tests.crash.two_owners import by_two, seconds_of
from tests.fakes.faults import Mode
from tests.procedures.harness.scenarios import SCENARIOS

pytestmark = pytest.mark.crash

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
Lives = Iterator[Callable[[], list[str]]]


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    yield
    structlog.reset_defaults()


@dataclass(frozen=True)
class Plant:
    """A bug, and a word of the check that finds it."""

    sound: Callable[[], list[str]]
    """A life without any fault: the bug is there, and nobody can tell."""
    lives: Callable[[], Lives]
    """With faults, one after the other."""
    check: str


def enumerated(name: str, harness: Harness, check: str) -> Plant:
    """Every core cell of one scenario's life."""
    scenario = BY_NAME[name]

    def lives() -> Lives:
        for cell in filter(is_core, cells(life(scenario, None).calls)):
            yield lambda cell=cell: list(life(scenario, cell, harness).wrong)  # type: ignore[misc]

    return Plant(lambda: list(life(scenario, None, harness).wrong), lives, check)


def refused(name: str, harness: Harness, check: str) -> Plant:
    """Every call of one scenario's life that the store or a node may refuse, refused."""
    scenario = BY_NAME[name]

    def lives() -> Lives:
        for cell in cells(life(scenario, None, harness).calls):
            if cell.mode is Mode.REFUSED:
                yield lambda cell=cell: list(life(scenario, cell, harness).wrong)  # type: ignore[misc]

    return Plant(lambda: list(life(scenario, None, harness).wrong), lives, check)


def taken_over(name: str, patch: Patch, check: str) -> Plant:
    """A bug of whoever takes over."""
    return enumerated(name, Harness(later=True, patch=patch), check)


def contended(patch: Patch, check: str, *, later: bool) -> Plant:
    def contest(one: Contest) -> list[str]:
        with pytest.MonkeyPatch.context() as patches:
            plant = partial(patches.setattr, *patch)
            if not later:
                plant()
            return contend(one, plant if later else lambda: None)

    sound = [one for one in contests() if one.is_sound]
    faulty = [one for one in contests() if not one.is_sound]
    return Plant(
        lambda: [wrong for one in sound for wrong in contest(one)],
        lambda: iter([partial(contest, one) for one in faulty]),
        check,
    )


def raced(harness: Harness, check: str) -> Plant:
    return Plant(lambda: race(harness, moves=False), lambda: iter([lambda: race(harness)]), check)


def without_undo(name: str, kind: str, step: str, check: str) -> Plant:
    kinds = with_step(kind, step, undo=None)
    return enumerated(name, Harness(kinds=kinds, later=True), check)


def doubled(name: str, harness: Harness, check: str) -> Plant:
    """Every step of one scenario's life, by two owners."""
    return Plant(
        lambda: list(life(BY_NAME[name], None, harness).wrong),
        lambda: (partial(by_two, name, second, harness) for second in seconds_of(name)),
        check,
    )


CREATE, RENAME = "create_table", "rename_table"
PLANTED = {
    "no fence": enumerated(CREATE, Harness(alter=without(is_fence)), "wrote after it was deposed"),
    "fence by value": enumerated(
        RENAME, Harness(make_store=ComparesFenceByValue), "wrote after it was deposed"
    ),
    "a read set that is not compared": raced(Harness(alter=without(is_read_set)), "reverse index"),
    "one commit in two": enumerated(RENAME, Harness(client=SplittingClient), "ended failed"),
    "doubt taken for not done": enumerated(
        RENAME, Harness(takes_unknown_for_not_done=True), "locks are held"
    ),
    "doubt sent again by the client": enumerated(
        RENAME, Harness(client=RetryingClient), "the code itself has noticed"
    ),
    "not resumed": enumerated(RENAME, Harness(patch=NOT_RESUMED), "never ends"),
    "no compare of the record": doubled(
        "truncate_table", Harness(alter=without(is_record)), "a procedure lives and is over"
    ),
    "resumed before it was locked again": contended(NOT_LOCKED_AGAIN, "did not wait", later=True),
    "lock released in finally": contended(RELEASED_IN_FINALLY, "did not wait", later=False),
    "no reverse index": enumerated(
        CREATE, Harness(alter=without_index, later=True), "reverse index"
    ),
    "regions that are not told": taken_over(
        "alter_table, a column added", NOT_TOLD, "floor 0, knows 0"
    ),
    "a copy in the set that was never made": enumerated(
        "create_table, with copies", Harness(patch=ALL_IN_SYNC), "copy of"
    ),
    "a region without a majority of its copies": enumerated(
        "create_table, with two copies", Harness(patch=NO_MAJORITY), "without a majority"
    ),
    "holders that are not waited for": taken_over(
        "alter_table, cancelled", NOT_DRAINED, "while fe-1 uses one below"
    ),
    "no delete-only": taken_over("create_index", NO_DELETE_ONLY, "from absent to write-only"),
    "no write-only": taken_over("create_index", NO_WRITE_ONLY, "from delete-only to public"),
    "floor not in the open order": taken_over(
        "failover_table", FLOOR_NOT_IN_OPEN, "opened below the floor"
    ),
    "old leases that are not waited out": taken_over(
        "failover_table", NOT_OUTWAITED, "has a lease"
    ),
    "an index that is gone, and regions not told": taken_over("drop_index", DEAD_NOT_TOLD, "dead"),
    "a cancelled change that stays half way": without_undo(
        "alter_table, cancelled", "alter_table", "advance", "differs"
    ),
    "a batch that leaves its regions": without_undo(
        "batch, node refuses", "batch", "make", "left: "
    ),
    "a record staged before its parts": enumerated(
        "batch, commands in parts", Harness(make_committer=StagesLate), "never ends"
    ),
    "no undo": without_undo("create_table, node refuses", "create_table", "create", "left: "),
    "a copy that goes before another was added": refused(
        "move_copy", Harness(kinds=removing_first()), "copies [["
    ),
    "files deleted before they were brought over": enumerated(
        "failover_table", Harness(kinds=discarding_first(), later=True), "never ends"
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_lives_are_tried_then_its_check_finds_it(
    bug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only a fault shows it: a life in which nothing happens would find what anybody finds."""
    plant = PLANTED[bug]
    assert plant.check
    assert said_by(plant.sound) == "", "found without a fault"

    tried, found = 0, ""
    for one in plant.lives():
        tried, found = tried + 1, said_by(one)
        if plant.check in found:
            break

    with capsys.disabled():
        print(f"\n{bug}: life {tried}: {found[:160]}", end="")
    assert plant.check in found


def said_by(one: Callable[[], list[str]]) -> str:
    try:
        return "; ".join(one())
    except (AssertionError, MetaError, ExceptionGroup) as error:
        return f"the code itself has noticed: {error!r}"


def test_given_no_bug_when_two_contend_then_one_at_a_time_and_both_end() -> None:
    assert {contest: wrong for contest in contests() if (wrong := contend(contest))} == {}


def test_given_no_bug_when_a_drop_races_a_move_then_nothing_is_left() -> None:
    assert race(Harness()) == []
