"""Catalogues of cases as pages: every case, and the test that shows it or the reason why none can.

The tests are read, not imported: `@pytest.mark.case("greptime 12", "input 1-24")` on a test.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from scripts.documents.catalog_cases import CATALOG
from scripts.documents.catalogue import Catalogue
from scripts.documents.conformance_cases import GREPTIME
from scripts.documents.input_cases import INPUTS
from scripts.documents.online_cases import ONLINE

_MARK = re.compile(r"([a-z]+) ([0-9]+)(?:-([0-9]+))?")
ROOT = Path(__file__).resolve().parents[2]

Shown = Mapping[int, tuple[str, ...]]
"""Case -> the tests that are marked with it, as `path::test`."""
CATALOGUES = (GREPTIME, INPUTS, ONLINE, CATALOG)


def pages() -> Mapping[str, str]:
    """Returns the generated page; called by scripts/generate.py."""
    return {one.page: page_of(one, shown_cases(ROOT / "tests", one)) for one in CATALOGUES}


def page_of(catalogue: Catalogue, shown: Shown) -> str:
    header = catalogue.header.format(
        shown=len(shown),
        total=len(catalogue.cases()),
        part=len(catalogue.in_part),
        missing=len(catalogue.not_built),
        other=len(catalogue.why_not),
    )
    sections = [_section(name, catalogue, shown) for name in catalogue.sections]
    return "\n".join([header, *sections])


def shown_cases(tests: Path, catalogue: Catalogue) -> Shown:
    found: dict[int, list[str]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        name = path.relative_to(tests.parent).as_posix()
        for test, source, case in _marked_in(path):
            if source == catalogue.source:
                found.setdefault(case, []).append(f"{name}::{test}")
    return {case: tuple(names) for case, names in sorted(found.items())}


@cache
def _marked_in(path: Path) -> tuple[tuple[str, str, int], ...]:
    """Read once for all catalogues."""
    return tuple(marked(ast.parse(path.read_text())))


def marked(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """(test, source, case) of every marker. Raises ValueError for text that is no case."""
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.case":
                for text in mark.args:
                    yield from ((node.name, *case) for case in _cases(ast.literal_eval(text)))


def _cases(text: str) -> Iterator[tuple[str, int]]:
    """Yields the cases of "source 12" or "source 12-15", both ends included. Raises ValueError."""
    found = _MARK.fullmatch(text)
    source, first, last = found.groups() if found else ("", "0", "0")
    known = {one.source: one.cases() for one in CATALOGUES}.get(source, {})
    for number in range(int(first), int(last or first) + 1):
        if number not in known:
            raise ValueError(f"no such case: {text!r}")
        yield source, number


def _section(name: str, catalogue: Catalogue, shown: Shown) -> str:
    lines = [f"## {name}", "", "| case | about | shown by |", "| --- | --- | --- |"]
    for line in catalogue.sections[name].strip().splitlines():
        number, _, about = line.partition(" ")
        lines.append(f"| {number} | {about} | {_here(int(number), catalogue, shown)} |")
    return "\n".join([*lines, ""])


def _here(case: int, catalogue: Catalogue, shown: Shown) -> str:
    tests = ", ".join(f"`{test}`" for test in shown.get(case, ()))
    if case in catalogue.in_part:
        return f"{tests}; in part: {catalogue.in_part[case]}"
    if case in catalogue.not_built:
        return f"not built: {catalogue.not_built[case]}"
    if case in catalogue.why_not:
        return f"cannot apply: {catalogue.why_not[case]}"
    return tests or "not shown yet"
