"""Folders of code are small and not deep, small modules have a reason, and a test stands where the
module does that it tests."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest

from scripts.documents.facts import Facts, facts, facts_of
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
LINES_MAX = 40

STAY: Mapping[str, str] = {
    "dataplane/datanode/allocator.py": "imported before Arrow, which looks only once",
    "dataplane/datanode/http/direct.py": "the routes past the framework, as in other programs",
    "dataplane/frontend/http/direct.py": "the routes past the framework, as in other programs",
    "dataplane/region/log/volatile_log.py": "one of two kinds of log, beside the other",
    "keys/catalog/large/unfinished.py": "part of the protocol of large versions, beside the rest",
    "keys/catalog/log/collection.py": "its importer has no room",
    "keys/catalog/log_sizes.py": "its importer has no room",
    "metasrv/adapters/http_silence.py": "the adapter to nodes of one port",
    "metasrv/api/http/middleware.py": "what metasrv admits, as in other programs",
    "metasrv/api/http/watcher_metrics.py": "its importer has no room",
    "metasrv/api/routes/docs.py": "a route",
    "metasrv/cli/catalog/history.py": "a command",
    "metasrv/cli/language/export_definitions.py": "a command",
    "metasrv/leadership/housekeeping.py": "the list of chores",
    "metasrv/nodes/flapping.py": "a term of the glossary, with its runbook",
    "metasrv/playground/die_with_parent.py": "a program of its own",
    "metasrv/sdk/sync_backups.py": "generated",
    "metasrv/sdk/sync_views.py": "generated",
    "metasrv/service/apply/sql_renames.py": "its importer has no room",
    "metasrv/service/ddl/ddl_import.py": "its importer is a route, which decides nothing",
    "metasrv/service/ddl/undrops.py": "its importer is a route, which decides nothing",
    "metasrv/service/state/closed_times.py": "its importer has no room",
    "metasrv/service/state/stream_places.py": "its importer has no room",
    "serving/head_as_get.py": "one rule of HTTP",
}
"""Path -> the reason why it is a file. An importer without room would pass 250 lines."""


SUITES = frozenset(
    {
        "tests",
        "tests/conformance",
        "tests/crash",
        "tests/dataplane/datanode/process",
        "tests/dataplane/region/faults",
        "tests/docker",
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
        "tests/sim/plots/copies",
        "tests/sim/plots/reshaped",
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
"""By folder of the product, and of the benchmarks."""
for _file in FILES:
    if _file.parts[0] in (*PACKAGES, "benchmarks"):
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


def fragments(
    sources: Mapping[str, Facts], lines: Mapping[str, int], *, lines_max: int = LINES_MAX
) -> set[str]:
    """Returns the files of at most *lines_max* lines that exactly one other file imports."""
    files = {file.removesuffix(".py").replace("/", "."): file for file in sources}
    importers: dict[str, set[str]] = defaultdict(set)
    for file, source in sources.items():
        for name in (*source.modules, *source.members):
            if name in files and files[name] != file:
                importers[files[name]].add(file)
    return {file for file, by in importers.items() if len(by) == 1 and lines[file] <= lines_max}


@pytest.mark.slow
def test_given_the_product_then_its_small_modules_with_one_importer_are_those_listed() -> None:
    paths = [path for top in PACKAGES for path in (ROOT / top).rglob("*.py")]
    files = {path.relative_to(ROOT).as_posix(): path for path in paths}
    sources = {file: facts(path) for file, path in files.items()}
    lines = {file: len(path.read_text().splitlines()) for file, path in files.items()}

    assert fragments(sources, lines) == STAY.keys(), "style.md, Sizes: move it, or say why it stays"


def test_given_modules_then_small_ones_with_one_importer_are_found() -> None:
    sources = {
        "a/small.py": facts_of("x = 1"),
        "a/large.py": facts_of("x = 1"),
        "a/shared.py": facts_of("x = 1"),
        "a/main.py": facts_of("from a import small\nimport a.large\nfrom a.shared import x"),
        "a/other.py": facts_of("import a.shared"),
    }
    lines = dict.fromkeys(sources, 10) | {"a/large.py": 41}

    assert fragments(sources, lines) == {"a/small.py"}


def imports_of_tests(sources: Mapping[str, Facts]) -> dict[str, list[str]]:
    """File -> the modules of tests that it imports."""
    found = {
        file: [name for name in source.modules if name.rpartition(".")[2].startswith("test_")]
        for file, source in sources.items()
    }
    return {file: names for file, names in found.items() if names}


@pytest.mark.slow
def test_given_the_tests_then_none_imports_a_test() -> None:
    sources = {str(file): facts(ROOT / file) for file in FILES if file.parts[0] == "tests"}

    assert imports_of_tests(sources) == {}, "move what they share to a module of helpers"


def test_given_a_file_that_imports_a_test_then_it_is_named() -> None:
    sources = {"a.py": "from tests.b.test_c import d", "e.py": "from tests.b.rig import d"}

    assert imports_of_tests({file: facts_of(text) for file, text in sources.items()}) == {
        "a.py": ["tests.b.test_c"]
    }
