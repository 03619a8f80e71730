"""Every test is in exactly one part, and a part that fails cannot look as if it passed."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from metasrv.cli.main import COMMANDS
from scripts.lanes import run_lanes
from scripts.parts import (
    GIVING_WAY,
    LANES,
    MARKS,
    NOT_BUILT,
    PARTS,
    Part,
    files_of,
    property_tests,
    selection,
)
from scripts.report import Took, table
from scripts.run_tests import Count, Run, ports_of, read_report
from scripts.setup import LONG_FORMS

ROOT = Path(__file__).parents[2]


def chosen_by(marks: set[str]) -> list[str]:
    """The parts whose expression takes a test with these marks, as pytest reads it."""
    names = {mark: mark in marks for mark in MARKS}
    return [part.name for part in PARTS if not part.command and holds(selection(part.name), names)]


def holds(expression: str, names: dict[str, bool]) -> bool:
    words = [word.split() for word in expression.split(" and ")]
    return all(names[word[-1]] is (len(word) == 1) for word in words)


@pytest.mark.parametrize(
    ("marks", "part"),
    [
        (set(), "fast"),
        ({"etcd"}, "etcd"),
        ({"etcd", "process"}, "process"),
        ({"etcd", "process", "spark"}, "spark"),
        (set(MARKS) - {"long"}, "demo"),
        ({"process", "long"}, "long"),
    ],
)
def test_given_marks_when_selected_then_exactly_one_part_runs_the_test(
    marks: set[str], part: str
) -> None:
    assert chosen_by(marks) == [part]


def test_given_the_marks_then_each_is_declared_and_has_a_part() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    declared = {line.split(":")[0] for line in settings["ini_options"]["markers"]}

    assert set(MARKS) == declared - {"case(name)"}
    assert set(MARKS) < {part.name for part in PARTS}


def test_given_the_parts_then_make_test_and_make_test_long_run_each_once() -> None:
    short = [part.name for lane in LANES for part in lane]

    assert sorted([*short, *LONG_FORMS]) == sorted(part.name for part in PARTS)


@pytest.mark.parametrize(
    ("marks", "is_drawn"), [({"slow"}, True), (set(), True), ({"crash"}, False)]
)
def test_given_a_property_test_when_seeds_are_drawn_then_a_slow_one_runs_too(
    marks: set[str], is_drawn: bool
) -> None:
    names = {mark: mark in marks for mark in MARKS}

    assert holds(property_tests(), {**names, "hypothesis": True}) is is_drawn


def test_given_a_part_that_is_split_then_one_in_real_time_is_not() -> None:
    assert {part.name for part in PARTS if part.is_split} < GIVING_WAY


def test_given_lanes_side_by_side_then_parts_of_one_share_ports_that_no_other_lane_has() -> None:
    ports = ports_of(LANES)

    assert ports.keys() == {part.name for lane in LANES for part in lane}
    ranges = [{ports[part.name] for part in lane} for lane in LANES]
    assert [len(of_lane) for of_lane in ranges] == [1, 1]
    (first, second) = [[int(at) for at in text.split("-")] for (text,) in ranges]
    assert first[0] < first[1] <= second[0] < second[1]


def test_given_the_story_then_it_is_beside_the_programs_and_does_not_give_way() -> None:
    """Its servers miss their deadlines where they wait for a processor."""
    (lane,) = [lane for lane in LANES if "story" in {part.name for part in lane}]

    assert "process" not in {part.name for part in lane}
    assert "story" not in GIVING_WAY


def test_given_files_when_a_part_looks_then_it_takes_those_that_write_its_mark(
    tmp_path: Path,
) -> None:
    texts = {
        "test_own.py": "@pytest.mark.etcd\n",
        "test_other.py": "@pytest.mark.etcd_like\n",
        "rig.py": "pytest.mark.etcd",
        "under/conftest.py": "params=[pytest.param(marks=pytest.mark.etcd)]",
        "under/deep/test_it.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    found = [path.relative_to(tmp_path).as_posix() for path in files_of("etcd", tmp_path)]

    assert found == ["test_own.py", "under/deep/test_it.py"]


def test_given_a_part_that_is_not_built_then_its_command_does_not_exist_yet() -> None:
    commands = {name for name, _, _ in COMMANDS}
    waiting = [part for part in PARTS if part.name in NOT_BUILT]

    assert {part.name for part in waiting} == NOT_BUILT
    for part in waiting:
        assert part.command is not None
        assert part.command[1] not in commands, f"remove {part.name} from NOT_BUILT"


def test_given_a_report_with_a_skip_when_read_then_the_skip_has_failed() -> None:
    text = '<testsuites><testsuite tests="5" failures="1" errors="1" skipped="1"/></testsuites>'

    assert read_report(text) == Count(passed=2, failed=3)


def test_given_a_part_that_failed_when_shown_then_the_total_has_failed() -> None:
    took = [
        Took("fast", 1500, 2900, ok=True, said="3 passed"),
        Took("etcd", 500, 100, ok=False),
    ]

    shown = table(took, 2000)

    assert shown.splitlines() == [
        "fast       1.5 s      2.9 cpu s  ok      3 passed",
        "etcd       0.5 s      0.1 cpu s  FAILED",
        "total      2.0 s      3.0 cpu s  FAILED",
    ]


@pytest.mark.process
def test_given_the_conftest_of_the_simulation_then_it_imports_no_cluster() -> None:
    """It is imported for each file below it, and the first test waits for that."""
    script = "import sys, tests.sim.conftest; print('tests.sim.cluster.world' in sys.modules)"

    said = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)

    assert (said.stdout, said.returncode) == ("False\n", 0)


@pytest.mark.process
def test_given_parts_of_two_lanes_when_run_then_each_is_told_whole_and_the_red_one_by_name(
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = Run(is_alone=False)
    says = "print('{0}'); print('and {0}'); raise SystemExit({1})"
    parts = [
        Part("one", 60, ("python", "-c", says.format("red", 3))),
        Part("two", 60, ("python", "-c", says.format("well", 0))),
    ]

    run_lanes(run.lane([part]) for part in parts)

    told = capfd.readouterr().out
    assert "\n== one\nred\nand red\n" in told
    assert "\n== two\nwell\nand well\n" in told
    assert [(took.ok, took.said) for took, _ in (run.ended[one.name] for one in parts)] == [
        (False, "ended with 3"),
        (True, "1 passed"),
    ]
