"""`make bench` runs what docs/benchmarks.md says it runs, and a failed command fails it."""

import re
from pathlib import Path

from benchmarks.__main__ import LEFT_OUT, MEASUREMENTS, failures

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()
LISTED = re.compile(r"^\| `python -m benchmarks\.([a-z_.]+)[^`]*` \|", re.MULTILINE)


def test_given_the_commands_of_the_page_then_each_is_run_or_left_out_by_name() -> None:
    run = {module for module, *_ in MEASUREMENTS}

    assert sorted(LISTED.findall(PAGE)) == sorted(run | LEFT_OUT.keys())
    assert not run & LEFT_OUT.keys()


def test_given_what_is_left_out_then_the_page_says_so_before_its_table() -> None:
    opening = PAGE.partition("| command |")[0]

    assert [name for name in LEFT_OUT if f"`benchmarks.{name}`" not in opening] == []


def test_given_the_measurements_then_each_is_a_program() -> None:
    paths = [ROOT / "benchmarks" / f"{name.replace('.', '/')}.py" for name, *_ in MEASUREMENTS]

    assert [
        path.name for path in paths if 'if __name__ == "__main__"' not in path.read_text()
    ] == []


def test_given_a_command_that_a_signal_ended_then_it_has_failed_beside_others_that_did_not() -> (
    None
):
    ended = [(("python", "-m", "a"), 0), (("python", "-m", "b"), -9), (("python", "-m", "c"), 2)]

    assert failures(ended) == ["FAILED with -9: -m b", "FAILED with 2: -m c"]
