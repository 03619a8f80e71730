"""Folders of code are small and not deep, and a test stands where the module does that it tests."""

from collections import Counter, defaultdict
from pathlib import Path, PurePosixPath

import pytest

from scripts.documents.facts import facts
from scripts.documents.references import PACKAGES

ROOT = Path(__file__).parents[2]
TOPS = (*PACKAGES, "scripts", "benchmarks", "tests")
FILES = sorted(
    PurePosixPath(path.relative_to(ROOT).as_posix())
    for top in TOPS
    for path in (ROOT / top).rglob("*.py")
    if path.name != "__init__.py"
)
FILES_MAX = 15
LEVELS_MAX = 4

SUITES = frozenset(
    {
        "tests",
        "tests/conformance",
        "tests/crash",
        "tests/dataplane/datanode/process",
        "tests/dataplane/region/faults",
        "tests/docs",
        "tests/house",
        "tests/keys/store/conformance",
        "tests/keys/store/differential",
        "tests/killed",
        "tests/model/copies",
        "tests/node_conformance",
        "tests/process",
        "tests/process/drill",
        "tests/process/kills",
        "tests/sim",
        "tests/sim/planted",
        "tests/sim/plots",
        "tests/takeover",
        "tests/walks",
    }
)
"""Folders whose tests are each about several rooms."""
UNMATCHED = 2
"""Tests beside a room that bear the name of no module of it. It only falls."""


def folder_of(file: PurePosixPath) -> str:
    return file.parent.as_posix()


def test_given_every_folder_then_it_has_few_files_of_code() -> None:
    sizes = Counter(folder_of(file) for file in FILES)
    large = {folder: size for folder, size in sizes.items() if size > FILES_MAX}

    assert large == {}


def test_given_every_file_then_few_folders_lead_to_it() -> None:
    deep = [str(file) for file in FILES if len(file.parts) - 1 > LEVELS_MAX]

    assert deep == []


MODULES: dict[str, set[str]] = defaultdict(set)
"""By folder of the product."""
for _file in FILES:
    if _file.parts[0] in PACKAGES:
        MODULES[folder_of(_file)].add(_file.stem)
TESTS = [file for file in FILES if file.parts[0] == "tests" and file.name.startswith("test_")]


def is_about(name: str, modules: set[str]) -> bool:
    """`txn` and `txn_of_many` are about the module `txn`."""
    return any(name == module or name.startswith(f"{module}_") for module in modules)


@pytest.mark.parametrize(
    ("name", "found"), [("txn", True), ("txn_of_many", True), ("txns", False), ("key", False)]
)
def test_given_a_name_when_compared_then_it_begins_with_that_of_a_module(
    name: str, found: bool
) -> None:
    assert is_about(name, {"txn", "batch"}) is found


def test_given_every_test_then_its_path_names_a_module_or_a_suite() -> None:
    elsewhere, unmatched = [], []
    for file in TESTS:
        folder = folder_of(file)
        modules = MODULES.get(folder.removeprefix("tests/"))
        if folder in SUITES:
            continue
        if modules is None:
            elsewhere.append(str(file))
        elif not is_about(file.stem.removeprefix("test_"), modules):
            unmatched.append(str(file))

    assert elsewhere == []
    assert len(unmatched) == UNMATCHED, unmatched


def test_given_the_suites_then_each_has_tests() -> None:
    assert {folder_of(file) for file in TESTS} >= SUITES


def imports_of(file: PurePosixPath) -> set[str]:
    names = facts(ROOT / file)
    return {*names.modules, *names.members}


@pytest.mark.slow
def test_given_every_file_then_none_imports_a_test_but_those_that_plant_bugs() -> None:
    """Planted bugs import the very tests that must find them; code shared by tests is a helper."""
    tests = {".".join(file.with_suffix("").parts) for file in TESTS}
    importing = [str(file) for file in FILES if imports_of(file) & tests]

    assert [name for name in importing if "planted" not in name] == []
