"""A driver leaves the processor to statements, by whatever its kernel compares."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataplane.pipelines.driver import NICENESS

NICEST = 19
"""The kernel's bound."""
AUTOGROUP = Path("/proc/self/autogroup")
SAID = """
import os
from pathlib import Path
from dataplane.pipelines.driver import stand_back
stand_back()
group = Path("/proc/self/autogroup")
print(os.nice(0), group.read_text().split()[-1] if group.exists() else 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("own_session", [True, False])
def test_given_a_driver_when_it_begins_then_its_process_and_its_own_session_stand_back(
    own_session: bool,
) -> None:
    mine = int(AUTOGROUP.read_text().split()[-1]) if AUTOGROUP.exists() else 0
    done = subprocess.run(
        [sys.executable, "-c", SAID],
        stdout=subprocess.PIPE,
        check=True,
        start_new_session=own_session,
    )

    nice, session = map(int, done.stdout.split())

    assert nice == min(os.nice(0) + NICENESS, NICEST)
    if AUTOGROUP.exists():
        assert session == (NICENESS if own_session else mine)
