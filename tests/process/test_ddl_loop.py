"""DDL in a loop under a writing load while processes die; for longer, with Spark: chaos.py."""

import signal
from pathlib import Path

import pytest

from tests.process.harness.ddl_loop import IN_PLACE, LEADER, Blow, Plan, changed_under_load

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

SHORT_MS = 300
BLOWS = (
    (Blow(LEADER, signal.SIGKILL), Blow("fe-1", signal.SIGSTOP)),
    (Blow("dn-1", signal.SIGKILL), Blow("fe-2", signal.SIGKILL)),
    (Blow(LEADER, signal.SIGSTOP), Blow("dn-2", signal.SIGSTOP, SHORT_MS)),
)


async def test_given_writers_when_a_table_changes_while_processes_die_then_no_row_is_wrong(
    tmp_path: Path,
) -> None:
    seen = await changed_under_load(tmp_path, Plan(BLOWS, IN_PLACE))

    print(seen)
    assert seen.wrong == ()
