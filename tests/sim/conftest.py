"""Where seeds are lived."""

from collections.abc import Iterator

import pytest

from tests.sim.runs import Processes, processes


@pytest.fixture(scope="session")
def sim_processes() -> Iterator[Processes]:
    with processes() as started:
        yield started
