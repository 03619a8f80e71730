"""Each promised figure is found in the report of its measurement."""

import pytest

from benchmarks.data import failovers
from benchmarks.data.failovers import Rounds
from benchmarks.targets import MOVES, TARGETS, Report, Target, figures, show


def rounds(spark: float) -> Rounds:
    peers = {"cp -r and fsync": [100.0], "pyarrow rewrite and fsync": [50.0]}
    return Rounds({"detect": [7_000.0]}, {**peers, "Spark, the whole step": [spark]})


def test_given_warm_and_cold_moves_then_each_is_judged_by_its_own_rounds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failovers.show("warm", rounds(20))
    failovers.show("cold", rounds(80))

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


GAP = Target(("data.switches",), "gap of a switch p99, ms", "<", 250, 100)
LINES = ["gap of a switch                 60 ms", "gap of a switch p99, ms         141         "]


@pytest.mark.parametrize(
    ("report", "result", "code"),
    [
        (Report(0, LINES), 141.0, 0),
        (Report(0, [line.replace("141", "999") for line in LINES]), 999.0, 0),
        (Report(0, ["skipped: PostgreSQL is not installed"]), "not measured: see above", 1),
        (Report(1, LINES), "its run failed with 1: see above", 1),
        (Report(-9, LINES), "its run failed with -9: see above", 1),
    ],
    ids=["held", "missed", "skipped", "failed", "killed"],
)
def test_given_a_report_then_its_figure_counts_only_if_its_run_succeeded(
    report: Report, result: float | str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    results = report.results([GAP])

    assert results == {GAP: result}
    assert show(results) == code
    assert ("MISSED" in capsys.readouterr().out) is (result == 999.0)
