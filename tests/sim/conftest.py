"""Where seeds are lived."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.sim.runs import Processes


@pytest.fixture(scope="session")
def sim_processes() -> Iterator["Processes"]:
    from tests.sim.runs import processes  # a second and more, and few files use it

    with processes() as started:
        yield started
