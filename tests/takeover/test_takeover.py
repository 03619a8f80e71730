"""Every kind, left in every state by a server of another version, and led to its end by ours.

The tapes are what each version has left, and are kept (docs/decisions/0106). Where one turns red, a
server could not go on with the work of one that it follows in a rolling upgrade.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import structlog

from procedures.kinds.registry import KINDS
from procedures.kinds.tables.drop_table import DROP_TABLE, DropTable
from procedures.machine import Kind
from tests.crash.side_by_side import side_by_side
from tests.procedures.harness.scenarios import SCENARIOS
from tests.takeover.takeover import led_on
from tests.takeover.tapes import FOLDER, Cut, path_of, read, states_of, unfinished
from tests.takeover.taping import taped

pytestmark = pytest.mark.crash

VERSIONS = sorted(folder.name for folder in FOLDER.iterdir())
TAPES = [
    (version, scenario.name)
    for version in VERSIONS
    for scenario in SCENARIOS
    if path_of(version, scenario.name).exists()
]
SHOWN_MAX = 3
STRIDE = int(os.environ.get("STRIDE", "2"))
"""One cut in so many is lived."""


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    yield
    structlog.reset_defaults()


def cuts(version: str, scenario: str) -> list[Cut]:
    return [Cut(version, scenario, lines) for lines in unfinished(read(version, scenario))]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.case("online 78")
@pytest.mark.case("catalog 115")
@pytest.mark.case("greptime 111-112")
def test_given_a_server_of_another_version_that_died_anywhere_when_led_on_then_a_legal_end(
    version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    every = [cuts(of, scenario) for of, scenario in TAPES if of == version]
    tried = [cut for scenario in every for cut in scenario[::STRIDE]]

    ended = zip(tried, side_by_side(led_on, tried), strict=True)
    wrong = [(cut, found) for cut, found in ended if found]

    with capsys.disabled():
        cut = sum(map(len, every))
        print(f"\n{version}: {cut} cuts, {len(tried)} lives, {len(wrong)} wrong", end="")
    assert wrong[:SHOWN_MAX] == []
    assert len({cut.scenario for cut in tried}) == len(list((FOLDER / version).iterdir()))


def test_given_the_kinds_then_each_step_and_each_undo_is_on_a_tape() -> None:
    steps = {f"{name}: {step}" for name, kind in KINDS.items() for step in kind.steps}
    undone = {
        f"{name}: undo {step}"
        for name, kind in KINDS.items()
        for step, row in kind.steps.items()
        if row.undo is not None
    }

    found = states_of(read(*tape) for tape in TAPES)

    assert (steps | undone) - found == set(), "python -m tests.takeover.taping VERSION"


def test_given_a_life_of_today_when_taped_then_it_can_be_led_on() -> None:
    (scenario,) = [one for one in SCENARIOS if one.name == "drop_table"]

    tape = taped(scenario)

    assert states_of([tape]) == {f"drop_table: {step}" for step in KINDS["drop_table"].steps}
    assert unfinished(tape)[-1] == len(tape)


class Stricter(DropTable):
    """It must say what for, and no server of before has asked."""

    purpose: str


STEPS = DROP_TABLE.steps
RENAMED = replace(
    DROP_TABLE,
    steps={
        "hide": replace(STEPS["hide"], to=frozenset({"take"})),
        "take": STEPS["remove"],
        "close": STEPS["close"],
    },
    no_return="take",
)


@pytest.mark.parametrize(
    "kind",
    [RENAMED, replace(DROP_TABLE, state=Stricter)],
    ids=["a step is renamed", "a field must be there"],
)
def test_given_a_program_that_forgets_who_was_before_then_a_tape_finds_it(
    kind: Kind[Any],
) -> None:
    cut = cuts("before-type-changes", "drop_table")[0]

    wrong = led_on(cut, {**KINDS, "drop_table": kind})

    assert [found.partition(":")[0] for found in wrong] == ["never ends"]
