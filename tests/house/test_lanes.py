"""Lanes go side by side, each one thing after another, and none outlives the others' failure."""

import os
import sys
from pathlib import Path

import pytest

from scripts.children import OUT_OF_TIME
from scripts.lanes import Lane, run, run_lanes
from tests.processes import has_ended

pytestmark = pytest.mark.process

MEET = ("sh", "-c", "touch $1; until test -e $2; do sleep 0.02; done", "meet")
FAMILY = ("sh", "-c", "sleep 300 & echo $!; wait")  # says the id of its own child
LIMIT_S = 240


def test_given_children_that_wait_for_each_other_when_in_two_lanes_then_they_meet(
    tmp_path: Path,
) -> None:
    codes: list[int] = []

    def lane(own: str, other: str) -> Lane:
        ended = yield from run((*MEET, own, other), cwd=tmp_path, log=None, limit_s=LIMIT_S)
        codes.append(ended.code)

    run_lanes([lane("a", "b"), lane("b", "a")])

    assert codes == [0, 0]


def test_given_a_limit_when_it_passes_then_the_family_is_gone_and_the_lane_goes_on(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    codes: list[int] = []

    def lane() -> Lane:
        for argv, limit_s in ((FAMILY, 3), (("true",), LIMIT_S)):
            ended = yield from run(argv, cwd=tmp_path, log=log, limit_s=limit_s)
            codes.append(ended.code)

    run_lanes([lane()])

    assert codes == [OUT_OF_TIME, 0]
    assert has_ended(int(log.read_text()))


def test_given_a_lane_that_fails_then_the_family_of_the_other_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def other() -> Lane:
        yield from run(FAMILY, cwd=tmp_path, log=log, limit_s=LIMIT_S)

    def fails() -> Lane:
        while not (log.exists() and log.read_text().endswith("\n")):
            yield
        raise FileNotFoundError(log.name)

    with pytest.raises(FileNotFoundError):
        run_lanes([other(), fails()])

    assert has_ended(int(log.read_text()))


def test_given_children_side_by_side_then_each_is_told_its_own_processor_time(
    tmp_path: Path,
) -> None:
    """One computes in a process of its own, the other waits for it."""
    done = tmp_path / "done"
    os.mkfifo(done)
    computes = f"{sys.executable} -c 'sum(range(20_000_000))'; echo > {done}"
    waits = f"read line < {done}"  # which takes no processor time, however long it is
    cpu_ms: dict[str, int] = {}

    def lane(script: str) -> Lane:
        argv = ("sh", "-c", script)
        ended = yield from run(argv, cwd=tmp_path, log=None, limit_s=LIMIT_S)
        cpu_ms[script] = ended.cpu_ms

    run_lanes([lane(computes), lane(waits)])

    assert cpu_ms[computes] > 100
    assert cpu_ms[computes] > 2 * cpu_ms[waits]


def test_given_a_child_that_computes_when_the_limit_passes_then_its_processor_time_is_told(
    tmp_path: Path,
) -> None:
    cpu_ms: list[int] = []

    def lane() -> Lane:
        argv = ("sh", "-c", "while :; do :; done")
        ended = yield from run(argv, cwd=tmp_path, log=None, limit_s=2)
        cpu_ms.append(ended.cpu_ms)

    run_lanes([lane()])

    assert cpu_ms[0] > 50
