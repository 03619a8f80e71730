"""A check is bounded by the processor time that it takes, whatever runs beside it."""

import sys
from pathlib import Path

import pytest

from scripts import children
from scripts.check import limited

pytestmark = pytest.mark.process


def test_given_a_check_that_computes_for_ever_when_its_processor_time_is_over_then_it_is_killed(
    tmp_path: Path,
) -> None:
    argv = limited((sys.executable, "-S", "-c", "while True: pass"), 1)

    assert children.run(argv, cwd=tmp_path, limit_s=100) not in (0, children.OUT_OF_TIME)


def test_given_a_check_within_its_processor_time_then_its_own_code_and_arguments_are_kept(
    tmp_path: Path,
) -> None:
    argv = limited(("sh", "-c", 'test "$1" = "a b" && exit 7', "sh", "a b"), 1)

    assert children.run(argv, cwd=tmp_path, limit_s=100) == 7
