"""The leader's word that a time is over: stored under the fence, and no commit comes before it."""

import asyncio

import pytest

from keys.commit.log_head import read_log_head
from keys.model.log import CatalogVersion, CatalogVersionKey
from keys.store.kv import Put
from metasrv_base.errors import NotLeader, Unavailable
from tests.keys.commit.leading_committer import (
    DEADLINE_MS,
    Fault,
    World,
    count,
    deposed,
    led,
    lost_answer,
    lost_request,
    never_sent,
    schema,
)


def soon_ms(world: World) -> int:
    """A time that the clock of these tests does not reach."""
    return world.store.clock.wall_ms() + 3_600_000


def stored(world: World) -> CatalogVersion:
    key = CatalogVersionKey()
    (item,) = [item for item in world.store.dump() if item.key == bytes(key)]
    return CatalogVersion.model_validate_json(item.value)


@pytest.mark.parametrize("faults", [[], [lost_answer], [lost_request, lost_answer]])
@pytest.mark.case("catalog 21")
def test_given_a_closed_time_when_changes_follow_then_each_is_later(faults: list[Fault]) -> None:
    async def scenario(world: World) -> None:
        until_ms = soon_ms(world)
        before = (await world.committer.commit(schema("s"))).stamp
        world.store.faults = list(faults)
        await world.committer.close(until_ms)
        closed = stored(world)
        after = (await world.committer.commit(schema("t"))).stamp

        assert closed == CatalogVersion(version=before.catalog_version or 0, at_ms=until_ms)
        assert before.at_ms < until_ms < after.at_ms
        assert after.catalog_version == closed.version + 1

    led(scenario)


def test_given_a_time_that_is_closed_already_then_nothing_is_sent() -> None:
    async def scenario(world: World) -> None:
        until_ms = soon_ms(world)
        await world.committer.close(until_ms)
        sent = len(world.store.sent)

        await world.committer.close(until_ms)
        await world.committer.close(until_ms - 1)

        assert len(world.store.sent) == sent

    led(scenario)


def test_given_closings_and_changes_at_once_then_the_version_is_written_once_in_each_batch() -> (
    None
):
    async def scenario(world: World) -> None:
        until_ms = soon_ms(world)
        first = asyncio.gather(
            world.committer.commit(schema("s")),
            world.committer.close(until_ms),
            world.committer.commit(schema("t")),
            world.committer.close(until_ms),
            world.committer.commit(count("x", 5)),
        )
        _, _, later, _, _ = await first

        assert later is not None
        assert later.stamp.at_ms > until_ms
        for request in world.store.sent:
            puts = [w for w in request.writes if isinstance(w, Put)]
            assert sum(put.key == bytes(CatalogVersionKey()) for put in puts) <= 1

    led(scenario)


@pytest.mark.case("catalog 146")
def test_given_the_next_leader_then_it_begins_above_what_the_last_one_closed() -> None:
    async def scenario(world: World) -> None:
        until_ms = soon_ms(world)
        await world.committer.close(until_ms)

        line = await read_log_head(world.store, world.fence, deadline_ms=DEADLINE_MS)

        assert line.at_ms == until_ms

    led(scenario)


def test_given_a_deposed_leader_when_it_closes_then_its_word_is_not_stored() -> None:
    async def scenario(world: World) -> None:
        until_ms = soon_ms(world)
        world.store.faults = [deposed]

        with pytest.raises(NotLeader):
            await world.committer.close(until_ms)

        assert stored(world).at_ms < until_ms

    led(scenario)


def test_given_a_closing_that_was_never_sent_then_the_time_stays_open() -> None:
    async def scenario(world: World) -> None:
        until_ms = soon_ms(world)
        world.store.faults = [never_sent]
        with pytest.raises(Unavailable):
            await world.committer.close(until_ms)

        done = await world.committer.commit(schema("s"))

        assert done.stamp.at_ms < until_ms
        assert stored(world).at_ms == done.stamp.at_ms

    led(scenario)
