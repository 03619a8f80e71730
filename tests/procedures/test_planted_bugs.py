"""Planted bugs: a harness that cannot fail proves nothing (GUARANTEES, harness, rule 2).

Each is planted at a seam between a server and its world, never by a switch in the code under test;
the test says which check caught it, and after how many lives.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import structlog

from base.errors import MetaError
from tests.procedures.contention import contend, contests
from tests.procedures.enumeration import Harness, cells, is_core, life
from tests.procedures.planted import (
    DEAD_NOT_TOLD,
    FLOOR_NOT_IN_OPEN,
    NO_DELETE_ONLY,
    NO_WRITE_ONLY,
    NOT_DRAINED,
    NOT_LOCKED_AGAIN,
    NOT_OUTWAITED,
    NOT_RESUMED,
    NOT_TOLD,
    RELEASED_IN_FINALLY,
    ComparesFenceByValue,
    Patch,
    RetryingClient,
    SplittingClient,
    discarding_first,
    is_fence,
    is_read_set,
    is_record,
    with_step,
    without,
    without_index,
)
from tests.procedures.races import race
from tests.procedures.scenarios import SCENARIOS

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
    """A bug, the lives that are to find it, and a word of the check that does."""

    lives: Callable[[], Lives]
    check: str
    patch: Patch | None = None


def enumerated(name: str, harness: Harness) -> Callable[[], Lives]:
    """Every core cell of one scenario's life, the sound one first."""

    def lives() -> Lives:
        scenario = BY_NAME[name]
        calls = life(scenario, None).calls
        for cell in (None, *filter(is_core, cells(calls))):
            yield lambda cell=cell: list(life(scenario, cell, harness).wrong)  # type: ignore[misc]

    return lives


def contended() -> Lives:
    for contest in contests():
        yield lambda contest=contest: contend(contest)  # type: ignore[misc]


def raced(harness: Harness) -> Callable[[], Lives]:
    return lambda: iter([lambda: race(harness)])


CREATE, RENAME = "create_table", "rename_table"
PLANTED = {
    "no fence": Plant(
        enumerated(CREATE, Harness(alter=without(is_fence))), "wrote after it was deposed"
    ),
    "fence by value": Plant(
        enumerated(RENAME, Harness(make_store=ComparesFenceByValue)), "wrote after it was deposed"
    ),
    "a read set that is not compared": Plant(
        raced(Harness(alter=without(is_read_set))), "reverse index"
    ),
    "one commit in two": Plant(enumerated(RENAME, Harness(client=SplittingClient)), "ended failed"),
    "doubt taken for not done": Plant(
        enumerated(RENAME, Harness(takes_unknown_for_not_done=True)), "locks are held"
    ),
    "doubt sent again by the client": Plant(
        enumerated(RENAME, Harness(client=RetryingClient)), "the code itself has noticed"
    ),
    "not resumed": Plant(enumerated(RENAME, Harness()), "never ends", NOT_RESUMED),
    "resumed before it was locked again": Plant(contended, "did not wait", NOT_LOCKED_AGAIN),
    "lock released in finally": Plant(contended, "did not wait", RELEASED_IN_FINALLY),
    "no compare of the record": Plant(
        enumerated("create_table, cancelled as it commits", Harness(alter=without(is_record))),
        "",
    ),
    "no reverse index": Plant(enumerated(CREATE, Harness(alter=without_index)), "reverse index"),
    "regions that are not told": Plant(
        enumerated("alter_table, a column added", Harness()), "floor 0, knows 0", NOT_TOLD
    ),
    "holders that are not waited for": Plant(
        enumerated("alter_table, cancelled", Harness()), "while fe-1 uses one below", NOT_DRAINED
    ),
    "no delete-only": Plant(
        enumerated("create_index", Harness()), "from absent to write-only", NO_DELETE_ONLY
    ),
    "no write-only": Plant(
        enumerated("create_index", Harness()), "from delete-only to public", NO_WRITE_ONLY
    ),
    "floor not in the open order": Plant(
        enumerated("failover_table", Harness()), "opened below the floor", FLOOR_NOT_IN_OPEN
    ),
    "old leases that are not waited out": Plant(
        enumerated("failover_table", Harness()), "has a lease", NOT_OUTWAITED
    ),
    "an index that is gone, and regions not told": Plant(
        enumerated("drop_index", Harness()), "dead", DEAD_NOT_TOLD
    ),
    "a cancelled change that stays half way": Plant(
        enumerated(
            "alter_table, cancelled",
            Harness(kinds=with_step("alter_table", "advance", undo=None)),
        ),
        "differs",
    ),
    "no undo": Plant(
        enumerated(
            "create_table, node refuses",
            Harness(kinds=with_step("create_table", "create", undo=None)),
        ),
        "",
    ),
    "files deleted before they were brought over": Plant(
        enumerated("failover_table", Harness(kinds=discarding_first())), ""
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_lives_are_tried_then_its_check_finds_it(
    bug: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant = PLANTED[bug]
    lives = plant.lives()
    first = next(lives)
    if plant.patch is not None:
        monkeypatch.setattr(*plant.patch)

    tried, found = 0, ""
    for one in (first, *lives):
        tried, found = tried + 1, said_by(one)
        if found:
            break

    with capsys.disabled():
        print(f"\n{bug}: life {tried}: {found[:160]}", end="")
    assert found
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
