"""A copy that is never made ends the measurement."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from benchmarks.data.recopies import COPY_MS_MAX, LOOK_MS, Look, until_in_sync
from metasrv_base.errors import Conflict
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.api.tables import CopyRole, RegionCopyBody
from tests.fakes.clock import FakeClock
from tests.metasrv.sdk.catalog import region
from tests.metasrv.sdk.shapes import procedure

LEARNING: tuple[CopyRole, ...] = ("in-sync", "learner")
DONE: tuple[CopyRole, ...] = ("in-sync", "in-sync")


def looks(*roles: tuple[CopyRole, ...], **body: Any) -> Callable[[], Awaitable[Look]]:
    """Sees these roles of the copies beside the leader one after the other, the last for ever."""
    waiting = iter(roles[:-1])

    async def look() -> Look:
        copies = [
            RegionCopyBody(node=f"dn-{number}", root="/dn/regions", role=role)
            for number, role in enumerate(next(waiting, roles[-1]), 2)
        ]
        return Look(
            region(0, None).model_copy(update={"copies": copies}),
            ProcedureBody.model_validate(procedure(kind="add_copy", **body)),
        )

    return look


async def test_given_a_copy_that_learns_when_it_is_in_sync_then_the_wait_ends() -> None:
    clock = FakeClock()

    await until_in_sync(looks(LEARNING, LEARNING, DONE), clock)

    assert clock.mono_ms() == FakeClock().mono_ms() + 2 * LOOK_MS


async def test_given_a_procedure_that_failed_then_its_error_ends_the_wait() -> None:
    error = {"code": "action-not-allowed", "detail": "no node has room"}
    failed = looks(LEARNING, state="failed", done=True, error=error)

    with pytest.raises(Conflict) as caught:
        await until_in_sync(failed, FakeClock())

    assert caught.value.facts["detail"] == "no node has room"


async def test_given_a_copy_that_is_not_made_when_time_is_up_then_the_wait_fails() -> None:
    clock = FakeClock()

    with pytest.raises(AssertionError, match="create_regions"):
        await until_in_sync(looks(LEARNING), clock)

    assert clock.mono_ms() >= FakeClock().mono_ms() + COPY_MS_MAX
