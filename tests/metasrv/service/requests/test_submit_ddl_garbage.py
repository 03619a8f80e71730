"""Errors leave nothing to the garbage collector: what it sets aside while it is alive, and is a
cycle, would stay for ever (metasrv/server/collector.py)."""

import asyncio
import gc
from collections.abc import Iterator, Sequence
from types import FrameType

import pytest

from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.node.orders import Order, OrderResult
from procedures.engine import owner
from procedures.ports import Sender
from procedures.scheduling.run_shielded import run_shielded
from tests.metasrv.api.fakes import FakeNodes
from tests.metasrv.api.rig import TABLES, leader, spec

TIMES = 20


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def left_to_gc() -> list[str]:
    """Functions whose frames only the collector would free."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    return [one.f_code.co_qualname for one in gc.garbage if isinstance(one, FrameType)]


async def fail() -> None:
    await asyncio.sleep(0)
    raise Unavailable(what="dn-1")


@pytest.mark.usefixtures("uncollected")
async def test_given_calls_that_fail_then_nothing_is_left_of_them() -> None:
    caught = 0
    async with asyncio.TaskGroup() as tasks:
        for _ in range(TIMES):
            try:
                await fan_out([fail, fail], at_once=2)
            except MetaError:
                caught += 1
            try:
                await run_shielded(tasks.create_task, fail, Unavailable(what="lost"))
            except MetaError:
                caught += 1

    assert caught == 2 * TIMES
    assert left_to_gc() == []


@pytest.mark.slow
@pytest.mark.usefixtures("uncollected")
async def test_given_a_step_that_fails_again_and_again_then_nothing_is_left_of_its_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures, send = [0], FakeNodes.send

    async def fails_at_first(
        self: FakeNodes, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        if failures[0] < TIMES:
            failures[0] += 1
            raise Unavailable(what="node", name=node)
        return await send(self, node, orders, sender=sender)

    async with leader(nodes=1) as one:
        monkeypatch.setattr(FakeNodes, "send", fails_at_first)
        monkeypatch.setattr(owner, "pause_ms", lambda *_: 0)
        gc.enable()
        gc.collect()
        gc.disable()

        answer = await one.client.post(TABLES, json=spec("b"), headers={"Prefer": "wait=10"})

        assert answer.status_code == 201
        assert failures[0] == TIMES
        assert left_to_gc() == []
