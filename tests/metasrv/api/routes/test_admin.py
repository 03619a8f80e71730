"""Whether a server says that it is ready."""

import asyncio

from keys.catalog.follower import Follower
from keys.catalog.log.handlers import STUCK_MS, LogEvent
from tests.metasrv.api.rig import DEADLINE_MS, leader


async def test_given_a_handler_that_does_not_end_when_asked_then_the_server_is_not_ready() -> None:
    async with leader() as one, asyncio.TaskGroup() as tasks:
        begun, ends = asyncio.Event(), asyncio.Event()

        async def handle(event: LogEvent, at_ms: int, revision: int) -> None:
            begun.set()
            await ends.wait()

        state = one.state
        held = Follower(one.kv, one.clock, deadline_ms=DEADLINE_MS)
        held.log.register_update_handler("held", handle)
        following = tasks.create_task(held.log.follow())
        before, state.follower.log = state.follower.log, held.log
        await begun.wait()
        held.log.heard_at_ms = one.clock.mono_ms()
        at_first = await one.client.get("/readyz")
        one.clock.ahead_ms += 40_000
        held.log.heard_at_ms = one.clock.mono_ms()  # etcd is not what is silent
        late = await one.client.get("/readyz")
        metrics = (await one.client.get("/metrics")).text
        ends.set()
        await held.log.loaded.wait()
        state.follower.log = before

        assert at_first.status_code == 200, at_first.text
        assert late.status_code == 503
        assert "an update handler" in late.text
        assert 30_000 <= STUCK_MS < 40_000
        assert "metasrv_update_handler_running_seconds 4" in metrics
        assert state.handling_ms == 0
        following.cancel()
