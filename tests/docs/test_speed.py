"""docs/speed.md lists every promised figure of `benchmarks.targets`, with its bounds."""

import re
from pathlib import Path

from benchmarks.targets import TARGETS

PAGE = Path(__file__).parents[2] / "docs" / "speed.md"
ROW = re.compile(
    r"^\| [^|]+ \| `python -m benchmarks\.([^`|]+)` \| ([<>]) ([\d.]+) \| ([\d.]+) \|", re.MULTILINE
)


def test_given_the_promised_figures_then_the_page_has_the_same_commands_and_bounds() -> None:
    promised = [
        (" ".join(target.command), target.better, target.at_least, target.goal)
        for target in TARGETS
    ]

    listed = [
        (command, sign, float(at_least), float(goal))
        for command, sign, at_least, goal in ROW.findall(PAGE.read_text())
    ]
    assert sorted(listed) == sorted(promised)
