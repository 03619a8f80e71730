"""The faults do to the store what they say, and tell the caller no more than a network would."""

import asyncio

import pytest

from keys.store.kv import Get, KeyValue, Kv, Put, Request
from keys.store.memory import MemoryKv
from metasrv_base.errors import Unavailable, Unknown
from tests.fakes.clock import FakeClock
from tests.keys.store.faulty import Call, Fault, FaultyKv
from tests.sim.loop import SimClock, SimLoop, run

DEADLINE_MS = 1_000
WRITE = Request(writes=(Put(b"a", b"1"),))


def always(fault: Fault) -> FaultyKv:
    async def script(_call: Call) -> Fault:
        return fault

    return FaultyKv(MemoryKv(FakeClock()), script)


async def stored(kv: Kv) -> list[KeyValue]:
    page = await kv.range(Get(b"", b"\0"), deadline_ms=DEADLINE_MS)
    return list(page.items)


@pytest.mark.parametrize(
    ("fault", "is_done"),
    [(Fault.NEVER_SENT, False), (Fault.ANSWER_LOST, True), (Fault.LATE, False)],
)
async def test_given_a_fault_when_written_then_it_is_unknown_and_done_or_not(
    fault: Fault, is_done: bool
) -> None:
    sound = MemoryKv(FakeClock())

    async def script(_call: Call) -> Fault:
        return fault

    with pytest.raises(Unknown):
        await FaultyKv(sound, script).txn(WRITE, deadline_ms=DEADLINE_MS)

    assert bool(sound.dump()) is is_done


@pytest.mark.parametrize("fault", [Fault.NEVER_SENT, Fault.ANSWER_LOST, Fault.LATE])
async def test_given_a_fault_when_read_then_it_is_unavailable(fault: Fault) -> None:
    with pytest.raises(Unavailable):
        await stored(always(fault))


async def test_given_a_late_write_when_delivered_then_it_is_done() -> None:
    sound = MemoryKv(FakeClock())

    async def script(_call: Call) -> Fault:
        return Fault.LATE

    faulty = FaultyKv(sound, script)
    with pytest.raises(Unknown):
        await faulty.txn(WRITE, deadline_ms=DEADLINE_MS)

    await faulty.deliver()

    assert [item.key for item in sound.dump()] == [b"a"]
    assert [call.name for call in faulty.calls] == ["txn"]


@pytest.mark.parametrize(
    ("fault", "is_done"), [(Fault.CRASH_BEFORE, False), (Fault.CRASH_AFTER, True)]
)
def test_given_a_crash_when_written_then_the_node_is_gone_and_the_write_done_or_not(
    fault: Fault, is_done: bool
) -> None:
    async def main(loop: SimLoop) -> tuple[bool, bool]:
        clock = SimClock(loop)
        sound = MemoryKv(clock)

        async def script(_call: Call) -> Fault:
            await clock.sleep_ms(5)
            return fault

        faulty = FaultyKv(sound, script, loop.crash)
        node = loop.spawn("a", faulty.txn(WRITE, deadline_ms=DEADLINE_MS))
        await asyncio.wait([node], timeout=60)
        return bool(sound.dump()), node.done()

    assert run(main, seed=1) == (is_done, False)
