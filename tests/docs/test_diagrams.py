"""Diagrams that people draw are compared with the code they speak of."""

import re
from pathlib import Path

import pytest

from procedures.kinds.failover.failover_table import FAILOVER_TABLE
from scripts.documents.facts import facts
from scripts.documents.references import PACKAGES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
EDGE = re.compile(r"^  (\S+) --> (\S+)$", re.MULTILINE)


def edges_under(head: str) -> set[tuple[str, str]]:
    """Returns the edges of the first diagram below that heading."""
    below = PAGE.split(f"\n## {head}\n")[1]
    diagram = below.split("```mermaid\n")[1].split("```")[0]
    return set(EDGE.findall(diagram))


def imports_of(package: str) -> set[str]:
    """Our other packages that *package* imports. The command line starts every program, so it
    may import the data plane (pyproject.toml), and says nothing about layers."""
    paths = (file.relative_to(ROOT) for file in (ROOT / package).rglob("*.py"))
    files = [ROOT / path for path in paths if "cli" not in path.parts]
    modules = {module for file in files for module in facts(file).modules}
    return {module.partition(".")[0] for module in modules} & set(PACKAGES) - {package}


@pytest.mark.slow
def test_given_the_layers_then_the_diagram_shows_what_is_imported() -> None:
    found = {(package, other) for package in PACKAGES for other in imports_of(package)}

    assert edges_under("Layers") == found


def test_given_failover_then_the_diagram_shows_its_steps_and_edges() -> None:
    steps = FAILOVER_TABLE.steps
    found = {(name, after) for name, step in steps.items() for after in step.to}
    found |= {("[*]", FAILOVER_TABLE.first)}
    found |= {(name, "[*]") for name in steps if FAILOVER_TABLE.may_end(name)}

    assert edges_under("A failover in stages") == found


def test_given_failover_then_the_table_tells_every_step() -> None:
    below = PAGE.split("\n## A failover in stages\n")[1].split("\n## ")[0]
    told = re.findall(r"^\| (\w+) \| .+ \| .+ \|$", below, re.MULTILINE)

    assert told == ["stage", *FAILOVER_TABLE.steps]
