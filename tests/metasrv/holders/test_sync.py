"""Waiting for holders through leaders that come and go: how long, for whom, and only once."""

import asyncio
from typing import Any

import pytest

from keys.model.holders import HolderKey
from keys.store.kv import Put, Request, TxnAnswer
from metasrv.holders.sync import TICK_MS
from metasrv_base.errors import MetaError, NotFound, Unavailable
from tests.keys.store.faulty import FaultyKv
from tests.metasrv.holders.leaders import LEASE_MS, TABLE, TTL_MS, W_MS, Office, Served
from tests.metasrv.holders.samples import pin
from tests.sim.loop import SimLoop, run


async def waited_ms(office: Office, one: Served, schema_version: int | None) -> int:
    began = office.clock.mono_ms()
    await one.sync.drained(TABLE, schema_version)
    return office.clock.mono_ms() - began


@pytest.mark.case("online 1")
def test_given_three_idle_holders_when_all_acknowledge_then_the_step_goes_on_at_once() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.publish(1)
        for name in ("fe-1", "fe-2", "fe-3"):
            await one.register(name, "i-1")
        await one.publish(2)

        async def follow(name: str, after_ms: int) -> None:
            await office.clock.sleep_ms(after_ms)
            one.acknowledge(name, 1)

        for number, name in enumerate(("fe-1", "fe-2", "fe-3"), 1):
            loop.spawn(name, follow(name, 10 * number))

        assert await waited_ms(office, one, 2) == 30

    run(main, 1)


@pytest.mark.case("online 3")
def test_given_a_killed_holder_when_its_lease_has_ended_then_it_is_waited_for_once() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.publish(1)
        await one.register("fe-1", "i-1")
        one.acknowledge("fe-1", 1)

        await one.publish(2)
        first = await waited_ms(office, one, 2)
        gone = await office.stored("fe-1")
        await one.publish(3)
        second = await waited_ms(office, one, 3)

        assert W_MS <= first <= W_MS + TICK_MS
        assert gone is None
        assert second == 0

    run(main, 1)


@pytest.mark.case("online 10")
def test_given_a_registration_then_no_lease_of_the_store_can_end_it() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.register("fe-1", "i-1")
        loop.kill("ms-1")

        await office.clock.sleep_ms(10 * LEASE_MS)
        office.kv.tick()

        assert await office.stored("fe-1") is not None

    run(main, 1)


def test_given_a_new_leader_when_a_holder_tells_it_all_again_then_the_step_goes_on() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        old = await office.elect("ms-1")
        await old.publish(1)
        await old.register("fe-1", "i-1")
        await old.publish(2)
        old.acknowledge("fe-1", 7)
        loop.kill("ms-1")
        new = await office.elect("ms-2")
        (unknown,) = new.sync.behind(TABLE, 2)

        async def tell() -> None:
            await office.clock.sleep_ms(40)
            new.acknowledge("fe-1", 8)

        loop.spawn("fe-1", tell())

        assert (unknown.have, unknown.expires_in_ms) == (None, TTL_MS + W_MS)
        assert await waited_ms(office, new, 2) == 40

    run(main, 1)


def test_given_a_new_leader_when_a_holder_stays_silent_then_it_has_a_full_lease() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        old = await office.elect("ms-1")
        await old.publish(1)
        await old.register("fe-1", "i-1")
        await old.publish(2)
        loop.kill("ms-1")
        new = await office.elect("ms-2")

        took = await waited_ms(office, new, 2)

        assert TTL_MS + W_MS <= took <= TTL_MS + W_MS + TICK_MS
        assert await office.stored("fe-1") is None

    run(main, 1)


def test_given_a_deposed_leader_when_it_registers_or_removes_then_nothing_is_written() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        old = await office.elect("ms-1")
        await old.register("fe-1", "i-1")
        await office.elect("ms-2")

        with pytest.raises(MetaError):
            await old.register("fe-2", "i-1")
        with pytest.raises(MetaError):
            await old.sync.sign_off("fe-1", "i-1")

        assert await office.stored("fe-2") is None
        assert await office.stored("fe-1") is not None

    run(main, 1)


@pytest.mark.case("catalog 139")
def test_given_a_leader_whose_log_is_behind_what_it_read_then_it_waits_for_its_log() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.publish(1)
        two = await office.elect("ms-2")
        await two.publish(2)

        with pytest.raises(Unavailable, match="stale"):
            await one.sync.drained(TABLE, 2)

        async def hear() -> None:
            await office.clock.sleep_ms(40)
            await one.follower.log.load()

        loop.spawn("ms-1", hear())
        assert await waited_ms(office, one, 2) == 40

    run(main, 1)


@pytest.mark.case("online 8")
def test_given_a_holder_that_registers_while_a_step_waits_then_it_knows_what_is_published() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.publish(1)
        await one.register("fe-1", "i-1")
        await one.publish(2)
        waiting = loop.spawn("step", waited_ms(office, one, 2))
        await office.clock.sleep_ms(10)

        answer = await one.register("fe-2", "i-1")
        await office.clock.sleep_ms(10)
        assert not waiting.done()
        one.acknowledge("fe-1", 1)
        await waiting

        assert answer.catalog_version == one.follower.catalog.version
        assert waiting.result() == 20

    run(main, 1)


def test_given_a_removal_that_the_store_does_not_take_then_it_is_tried_again() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        store = Reads(office.kv)
        one = await office.elect("ms-1", store)
        await one.register("fe-1", "i-1")
        store.is_away = True
        await office.clock.sleep_ms(W_MS + 10 * TICK_MS)
        assert await office.stored("fe-1") is not None

        store.is_away = False
        await office.clock.sleep_ms(2 * TICK_MS)

        assert await office.stored("fe-1") is None
        with pytest.raises(NotFound):
            one.acknowledge("fe-1", 1)

    run(main, 1)


class Reads(FaultyKv):
    """A store that is silent for those who only read."""

    is_away = False

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        if self.is_away and not request.writes:
            raise Unavailable
        return await super().txn(request, deadline_ms=deadline_ms)


def test_given_a_removal_and_a_new_incarnation_at_once_then_the_new_one_stays() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.register("fe-1", "i-1")

        both: Any = await asyncio.gather(
            one.sync.sign_off("fe-1", "i-1"), one.register("fe-1", "i-2"), return_exceptions=True
        )

        stored = await office.stored("fe-1")
        assert stored is not None
        assert stored.incarnation == "i-2"
        assert both[1].catalog_version == one.follower.catalog.version
        assert [entry.holder.incarnation for entry in one.sync.book.entries()] == ["i-2"]

    for seed in range(10):
        run(main, seed)


def test_given_later_changes_of_the_table_then_only_the_published_version_must_be_known() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.publish(1)
        await one.register("fe-1", "i-1")
        await one.publish(2)
        published = one.follower.catalog.version
        one.acknowledge("fe-1", 1)

        for _ in range(3):
            await one.publish(2)  # a floor, a route: no other schema version

        assert one.follower.catalog.version == published + 3
        assert one.sync.behind(TABLE, 2) == ()
        (late,) = one.sync.behind(TABLE, 3)
        assert late.need == one.follower.catalog.version + 1

    run(main, 1)


def test_given_a_change_that_makes_no_version_then_it_must_be_known_and_no_transaction_ends() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.publish(1)
        await one.publish(2)
        await one.register("fe-1", "i-1")
        await one.publish(2)

        async def tell() -> None:
            await office.clock.sleep_ms(40)
            one.acknowledge("fe-1", 1, pin(TABLE, 1, "t-8"))

        loop.spawn("fe-1", tell())
        (behind,) = one.sync.behind(TABLE, None)

        assert (behind.holder, behind.need) == ("fe-1", one.follower.catalog.version)
        assert await waited_ms(office, one, None) == 40

    run(main, 1)


def test_given_a_table_that_is_hidden_then_it_must_be_known_and_its_transactions_end() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.publish(1)
        await one.register("fe-1", "i-1", pin(TABLE, 1, "t-8"))
        one.acknowledge("fe-1", 1, pin(TABLE, 1, "t-8"))
        await one.hide(1)
        known = one.follower.catalog.version
        (before,) = one.sync.behind(TABLE, 2)

        async def follow() -> None:
            await office.clock.sleep_ms(30)
            one.acknowledge("fe-1", 2, pin(TABLE, 1, "t-8"))
            await office.clock.sleep_ms(40)
            one.acknowledge("fe-1", 3)

        loop.spawn("fe-1", follow())

        assert (before.have, before.need) == (known - 1, known)
        assert await waited_ms(office, one, 2) == 70
        assert one.sync.behind(TABLE, 2) == ()

    run(main, 1)


@pytest.mark.case("online 20")
def test_given_a_long_transaction_on_one_table_then_a_change_of_another_goes_on() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        one = await office.elect("ms-1")
        await one.publish(1)
        await one.register("fe-1", "i-1")
        await one.publish(2)

        one.acknowledge("fe-1", 1, pin(TABLE + 1, 1))

        assert await waited_ms(office, one, 2) == 0
        assert str(HolderKey("fe-1")) == "__schema_holder/fe-1"

    run(main, 1)


@pytest.mark.case("online 11")
def test_given_a_wall_clock_that_jumps_then_no_lease_is_longer_or_shorter() -> None:
    async def main(loop: SimLoop) -> None:
        for jump_ms in (3_600_000, -3_600_000):
            office = Office(loop)
            one = await office.elect(f"ms-{jump_ms}")
            await one.publish(1)
            await one.register("fe-1", "i-1")
            await one.publish(2)
            office.clock.jump(jump_ms)

            took = await waited_ms(office, one, 2)

            assert W_MS <= took <= W_MS + TICK_MS

    run(main, 1)


def test_given_a_registration_that_cannot_be_read_then_it_is_waited_for_once_and_left() -> None:
    async def main(loop: SimLoop) -> None:
        office = Office(loop)
        raw = b'{"format":99}'
        write = Put(b"__schema_holder/fe-1", raw)
        await office.elect("ms-1")
        loop.kill("ms-1")
        await office.kv.txn(Request(writes=(write,)), deadline_ms=1_000)
        one = await office.elect("ms-2")
        await one.publish(1)

        await one.publish(2)
        first = await waited_ms(office, one, 2)
        await one.publish(3)
        second = await waited_ms(office, one, 3)

        assert TTL_MS < first <= TTL_MS + W_MS + 2 * TICK_MS
        assert second == 0
        assert [item.value for item in office.kv.dump() if item.key == write.key] == [raw]

    run(main, 1)
