"""Fixtures of every area: one real etcd per session, a fresh prefix per test.

A test that uses `etcd` carries the mark of that name (or of a later part, scripts/parts.py).
An area's own fixtures are in its own `conftest.py`.
"""

import gc
import signal
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from scripts.parts import MARKS, marks_of
from serving.left_out import leave_out_httpx_command, leave_out_pandas, leave_out_sniffio
from tests.etcd.process import EtcdProcess

# The same examples each time, fifty where a test does not say: a longer search is a run of its own.
# Time limits are pytest's alone, and a failure prints what repeats it anywhere.
settings.register_profile(
    "house", deadline=None, database=None, print_blob=True, derandomize=True, max_examples=50
)
# `make search`: other examples each time, and a hundred times as many.
settings.register_profile(
    "search", settings.get_profile("house"), derandomize=False, max_examples=10_000
)
# The part `drawn`: a few examples each, of a seed that is another one in every run of all parts.
settings.register_profile(
    "drawn", settings.get_profile("house"), derandomize=False, max_examples=15
)
settings.load_profile("house")

leave_out_httpx_command()  # as the programs do: half of the import of httpx
leave_out_pandas()  # as the programs do: each forked process of lives would import it anew
leave_out_sniffio()  # as the programs do: each request to an application would search for it

# A shell lets what it starts in the background ignore Ctrl-C, and so would the programs of tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

YOUNG_MAX = 50_000
"""New objects before garbage is looked for: by default 700, which was a quarter of all the time."""


def pytest_collection_finish() -> None:
    """Modules, models and tests stay: they are not looked through again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX)


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """A part collects the files that write its mark: elsewhere a mark would lose its test."""
    tests, marks = Path(__file__).parent, frozenset(MARKS)
    for item in items:
        for mark in marks & {mark.name for mark in item.iter_markers()}:
            if item.path.match("test_*.py") and mark not in marks_of(item.path, tests):
                raise pytest.UsageError(f"{item.nodeid}: write pytest.mark.{mark} in its file")


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint, host:port, of an etcd that no test stops."""
    process = EtcdProcess(tmp_path_factory.mktemp("etcd"))
    process.start()
    yield process.endpoint
    process.kill()


@pytest.fixture(scope="session")
def _prefix_numbers() -> Iterator[int]:
    return count(1)


@pytest.fixture
def etcd_prefix(_prefix_numbers: Iterator[int]) -> bytes:
    return b"/test-%d/" % next(_prefix_numbers)
