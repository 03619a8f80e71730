"""The simulation itself: one seed, one history; the dead stay silent; time does not wait."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from metasrv_base.clock import Clock
from tests.sim.loop import SimClock, SimLoop, SimStalledError, current_node, run

SEED = 7
HOUR_MS = 3_600_000


def test_given_long_sleeps_when_run_then_virtual_time_jumps_to_their_ends() -> None:
    async def main(loop: SimLoop) -> tuple[int, int]:
        clock: Clock = SimClock(loop, epoch_ms=1_000, offset_ms=5)
        await clock.sleep_ms(HOUR_MS)
        return clock.mono_ms(), clock.wall_ms()

    assert run(main, SEED) == (HOUR_MS, HOUR_MS + 1_005)


async def busy(loop: SimLoop, name: str) -> None:
    async def child(number: int) -> None:
        await SimClock(loop).sleep_ms(loop.random.randrange(1_000))
        loop.trace(name, number)

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(child(number))
    waiting = [loop.spawn(name, child(number)) for number in range(5)]
    while waiting:
        done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        loop.trace(name, len(done))
        waiting = list(rest)


async def three_nodes(loop: SimLoop) -> str:
    tasks = [loop.spawn(node, busy(loop, node)) for node in ("a", "b", "c")]
    await asyncio.gather(*tasks)
    return loop.digest()


def test_given_one_seed_when_run_again_then_the_history_is_the_same() -> None:
    digests = {run(three_nodes, SEED) for _ in range(10)}

    assert len(digests) == 1


def test_given_other_seeds_when_run_then_histories_differ() -> None:
    assert len({run(three_nodes, seed) for seed in range(10)}) == 10


def test_given_a_killed_node_when_it_is_deep_in_tasks_then_nothing_of_it_runs_again() -> None:
    async def main(loop: SimLoop) -> list[str]:
        clock, ran = SimClock(loop), list[str]()

        async def numbers() -> AsyncIterator[int]:
            try:
                for number in range(100):
                    await clock.sleep_ms(10)
                    yield number
            finally:
                ran.append("generator closed")

        async def worker() -> None:
            try:
                async for number in numbers():
                    ran.append(str(number))
            except asyncio.CancelledError:
                ran.append("cancelled")
                raise
            finally:
                ran.append("finally")

        async def node() -> None:
            async with asyncio.timeout(50), asyncio.TaskGroup() as group:
                group.create_task(worker())

        loop.spawn("a", node())
        await clock.sleep_ms(35)
        loop.kill("a")
        await clock.sleep_ms(HOUR_MS)
        return list(ran)

    assert run(main, SEED) == ["0", "1", "2"]


def test_given_a_node_that_kills_itself_when_others_wait_then_they_go_on() -> None:
    async def main(loop: SimLoop) -> tuple[bool, bool]:
        after: list[str] = []

        async def suicide() -> None:
            try:
                await loop.crash()
            finally:
                after.append("finally")

        dead = loop.spawn("a", suicide())
        await asyncio.wait([dead], timeout=10)
        return dead.done(), bool(after)

    assert run(main, SEED) == (False, False)


def test_given_a_dead_node_when_its_future_is_resolved_then_it_stays_silent() -> None:
    async def main(loop: SimLoop) -> bool:
        gate = loop.create_future()
        woken = asyncio.Event()

        async def wait() -> None:
            await gate
            woken.set()

        loop.spawn("a", wait())
        await SimClock(loop).sleep_ms(1_000)
        loop.kill("a")
        gate.set_result(None)
        await SimClock(loop).sleep_ms(1_000)
        return woken.is_set() or not loop.is_dead("a")

    assert run(main, SEED) is False


def test_given_a_paused_node_when_it_wakes_then_it_goes_on_late_and_in_order() -> None:
    async def main(loop: SimLoop) -> list[tuple[int, str]]:
        clock, seen = SimClock(loop), list[tuple[int, str]]()

        async def tick(name: str) -> None:
            for number in range(3):
                await clock.sleep_ms(10)
                seen.append((clock.mono_ms(), f"{name}{number}"))

        paused, other = loop.spawn("a", tick("a")), loop.spawn("b", tick("b"))
        await clock.sleep_ms(15)
        loop.pause("a", ms=500)
        loop.pause("a", ms=1_000)
        await asyncio.gather(paused, other)
        return seen

    found = run(main, SEED)

    assert sorted(found) == [
        (10, "a0"),
        (10, "b0"),
        (20, "b1"),
        (30, "b2"),
        (1_015, "a1"),
        (1_025, "a2"),
    ]


def test_given_a_task_when_it_starts_others_then_they_run_on_its_node() -> None:
    async def main(loop: SimLoop) -> tuple[str, str]:
        async def inner() -> str:
            await SimClock(loop).sleep_ms(100)
            return current_node()

        async def outer() -> str:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(inner())
            return task.result()

        return await loop.spawn("a", outer()), current_node()

    assert run(main, SEED) == ("a", "world")


def test_given_nobody_who_could_wake_main_when_run_then_the_deadlock_is_found() -> None:
    async def main(loop: SimLoop) -> None:
        lock = asyncio.Lock()
        await lock.acquire()
        await lock.acquire()

    with pytest.raises(SimStalledError):
        run(main, SEED)


def test_given_an_endless_loop_when_run_then_the_livelock_is_found() -> None:
    async def main(loop: SimLoop) -> None:
        while True:
            await SimClock(loop).sleep_ms(0)

    with pytest.raises(SimStalledError):
        run(main, SEED, steps_max=1_000)


def test_given_a_task_that_fails_unseen_when_run_then_its_error_is_raised() -> None:
    async def fail() -> None:
        raise KeyError("lost")

    async def main(loop: SimLoop) -> None:
        loop.spawn("a", fail())
        await SimClock(loop).sleep_ms(1_000)

    with pytest.raises(KeyError, match="lost"):
        run(main, SEED)


def test_given_several_that_fail_when_run_then_no_error_hides_another() -> None:
    async def fail(text: str, ms: int) -> None:
        await SimClock(asyncio.get_running_loop()).sleep_ms(ms)  # type: ignore[arg-type]
        raise KeyError(text)

    async def main(loop: SimLoop) -> None:
        loop.spawn("a", fail("the term is over", 1))
        loop.spawn("b", fail("its cause", 2))
        await SimClock(loop).sleep_ms(1_000)
        raise ValueError("and what came of it")

    with pytest.raises(BaseExceptionGroup) as several:
        run(main, SEED)

    told = {str(error.args[0]) for error in several.value.exceptions}
    assert told == {"the term is over", "its cause", "and what came of it"}


def test_given_a_task_that_fails_when_main_looks_at_it_then_run_ends_well() -> None:
    async def fail() -> None:
        raise KeyError("seen")

    async def main(loop: SimLoop) -> str:
        task = loop.spawn("a", fail())
        await asyncio.wait([task])
        return repr(task.exception())

    assert run(main, SEED) == "KeyError('seen')"


def test_given_threads_when_asked_for_then_it_is_our_own_mistake() -> None:
    async def main(loop: SimLoop) -> None:
        await asyncio.to_thread(print)

    with pytest.raises(AssertionError, match="no threads"):
        run(main, SEED)


def test_given_a_sleeper_cancelled_on_a_paused_node_when_it_wakes_then_nothing_breaks() -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        sleeper = loop.spawn("a", clock.sleep_ms(100))
        await clock.sleep_ms(1)
        loop.pause("a", 1_000)
        await clock.sleep_ms(500)  # its timer has fired, and is held
        sleeper.cancel()
        await clock.sleep_ms(1_000)

        assert sleeper.cancelled()

    run(main, 1)
