"""Each promised figure is found in the report of its measurement."""

import pytest

from benchmarks.data.failovers import Rounds, show
from benchmarks.targets import MOVES, TARGETS, figures


def rounds(spark: float) -> Rounds:
    peers = {"cp -r and fsync": [100.0], "pyarrow rewrite and fsync": [50.0]}
    return Rounds({"detect": [7_000.0]}, {**peers, "Spark, the whole step": [spark]})


def test_given_warm_and_cold_moves_then_each_is_judged_by_its_own_rounds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show("warm", rounds(20))
    show("cold", rounds(80))

    lines = capsys.readouterr().out.splitlines()
    moves = [target for target in TARGETS if target.command == MOVES]
    judged = [(target.label, value) for target, value in figures(lines, moves)]
    assert judged == [
        ("Spark / cp -r and fsync, warm", 0.2),
        ("Spark / cp -r and fsync, cold", 0.8),
    ]


def test_given_two_targets_of_a_measurement_then_no_label_begins_the_other() -> None:
    labels = [(target.command, target.label) for target in TARGETS]

    alike = [
        (label, other)
        for command, label in labels
        for same, other in labels
        if (command, label) != (same, other) and command == same and other.startswith(label)
    ]
    assert alike == []
