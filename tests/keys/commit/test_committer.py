"""The committer: whatever is unknown is settled by the same bytes."""

import asyncio
from dataclasses import replace

import pytest

from keys.commit.committer import Committed, Committer, StaleRead
from keys.commit.log_head import read_log_head
from keys.commit.txn import Txn
from keys.model.catalogs import SchemaNameKey
from keys.model.cluster import Sequence, SequenceKey
from keys.model.tables import TableNameKey
from keys.store.kv import TXN_OPS_MAX, Put, Request, TxnAnswer
from metasrv_base.errors import Corrupt, MetaError, NotLeader, Refused, Unavailable, Unknown
from tests.keys.commit.leading_committer import (
    DEADLINE_MS,
    Store,
    World,
    count,
    deposed,
    frozen,
    led,
    lost_answer,
    lost_answer_and_deposed,
    lost_request,
    never_sent,
    schema,
)
from tests.sim.loop import SimLoop, run


def test_given_a_lost_answer_when_committed_then_the_same_bytes_settle_it_as_done_once() -> None:
    async def scenario(world: World) -> None:
        heard: list[int] = []
        world.committer.on_update(lambda update, revision: heard.append(update.version))
        world.store.faults = [lost_answer, lost_request]

        done = await world.committer.commit(schema("s"))
        after = await world.committer.commit(schema("t"))

        assert world.store.sent[0] == world.store.sent[1] == world.store.sent[2]
        assert (done.stamp.catalog_version, after.stamp.catalog_version) == (2, 3)
        assert heard == [2, 3]
        (item,) = [i for i in world.store.dump() if i.key == bytes(SchemaNameKey("main", "s"))]
        assert done.revision == item.mod_revision

    led(scenario)


def test_given_a_copy_that_arrives_late_when_applied_then_it_does_nothing() -> None:
    async def scenario(world: World) -> None:
        world.store.faults = [lost_request]
        await world.committer.commit(schema("s"))
        await world.committer.commit(count("x", 5))
        before = world.store.dump()

        for copy in list(world.store.sent):
            assert not (await world.store.apply(copy)).succeeded

        assert world.store.dump() == before

    led(scenario)


def test_given_a_request_that_was_never_sent_then_unavailable_and_the_line_goes_on() -> None:
    async def scenario(world: World) -> None:
        world.store.faults = [never_sent]

        with pytest.raises(Unavailable):
            await world.committer.commit(schema("s"))

        assert (await world.committer.commit(schema("s"))).stamp.catalog_version == 2

    led(scenario)


def test_given_a_copy_in_doubt_when_the_next_is_not_sent_then_the_line_keeps_asking() -> None:
    async def scenario(world: World) -> None:
        world.store.faults = [lost_answer, never_sent, never_sent]

        done = await world.committer.commit(schema("s"))

        assert (done.stamp.catalog_version, len(world.store.sent)) == (2, 4)

    led(scenario)


def test_given_a_stale_read_then_not_done_and_the_line_goes_on() -> None:
    async def scenario(world: World) -> None:
        await world.committer.commit(schema("s"))

        with pytest.raises(StaleRead) as stale:
            await world.committer.commit(schema("s"))

        assert stale.value.facts["key"] == str(SchemaNameKey("main", "s"))
        assert (await world.committer.commit(schema("t"))).stamp.catalog_version == 3

    led(scenario)


def test_given_a_lost_fence_then_not_leader_for_it_and_for_all_that_come_after() -> None:
    async def scenario(world: World) -> None:
        world.store.faults = [deposed]

        with pytest.raises(NotLeader):
            await world.committer.commit(schema("s"))
        with pytest.raises(NotLeader):
            await world.committer.commit(schema("t"))

        assert world.value(bytes(SchemaNameKey("main", "s"))) is None

    led(scenario)


def test_given_a_lost_answer_and_a_lost_fence_then_unknown_never_not_done() -> None:
    async def scenario(world: World) -> None:
        world.store.faults = [lost_answer_and_deposed]

        with pytest.raises(Unknown):
            await world.committer.commit(schema("s"))

        assert world.value(bytes(SchemaNameKey("main", "s"))) is not None

    led(scenario)


def test_given_a_term_that_ends_then_unknown_in_flight_and_not_leader_in_the_queue() -> None:
    async def main(loop: SimLoop) -> None:
        world = await World.made(loop)
        world.store.faults = [frozen]
        ended: dict[str, MetaError | Committed] = {}

        async def commit(name: str) -> None:
            try:
                ended[name] = await world.committer.commit(schema(name))
            except MetaError as error:
                ended[name] = error

        line = loop.spawn("leader", world.committer.run())
        asked = [loop.spawn("client", commit(name)) for name in ("a", "b", "c")]
        await world.store.clock.sleep_ms(10)
        asked[1].cancel()  # it has hung up: the others are answered all the same
        line.cancel()
        await asyncio.wait([line, *asked])

        assert type(ended["a"]) is Unknown
        assert type(ended["c"]) is NotLeader
        with pytest.raises(NotLeader):
            await world.committer.commit(schema("d"))

    run(main, 1)


def test_given_a_line_that_began_with_a_stale_revision_then_it_is_read_again_and_renumbered() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        world = await World.made(loop)
        line = await read_log_head(world.store, world.fence, deadline_ms=DEADLINE_MS)
        stale = replace(line, version_revision=line.version_revision - 1)
        committer = Committer(world.store, world.store.clock, stale, deadline_ms=DEADLINE_MS)
        loop.spawn("leader", committer.run())

        assert (await committer.commit(schema("s"))).stamp.catalog_version == 2
        assert len(world.store.sent) == 2

    run(main, 1)


def test_given_a_version_that_this_leader_did_not_write_then_corrupt() -> None:
    async def main(loop: SimLoop) -> None:
        world = await World.made(loop)
        line = await read_log_head(world.store, world.fence, deadline_ms=DEADLINE_MS)
        wrong = replace(line, version=7, version_revision=1)
        committer = Committer(world.store, world.store.clock, wrong, deadline_ms=DEADLINE_MS)
        running = loop.spawn("leader", committer.run())

        with pytest.raises(Corrupt):
            await committer.commit(schema("s"))
        assert isinstance(running.exception(), Corrupt)

    run(main, 1)


@pytest.mark.case("greptime 61")
def test_given_a_change_that_is_too_large_then_nothing_is_sent() -> None:
    async def scenario(world: World) -> None:
        txn = Txn()
        for number in range(TXN_OPS_MAX):
            txn = txn.expecting(SequenceKey(f"s{number}"), 0)

        with pytest.raises(Refused):
            await world.committer.commit(txn.put(SequenceKey("s0"), Sequence(next=1)))

        assert world.store.sent == []

    led(scenario)


def test_given_a_range_that_is_not_empty_then_stale() -> None:
    async def scenario(world: World) -> None:
        tables = TableNameKey.under("main", "public")
        await world.store.apply(Request(writes=(Put(tables.start + b"t", b"{}"),)))

        with pytest.raises(StaleRead):
            await world.committer.commit(schema("s").while_empty(tables))

    led(scenario)


# ---- group commit


def asked(world: World, *txns: Txn) -> "list[asyncio.Task[Committed]]":
    """All of *txns* in that order, before the line looks at any."""
    return [world.loop.spawn("leader", world.committer.commit(txn)) for txn in txns]


async def outcomes(tasks: "list[asyncio.Task[Committed]]") -> list[Committed | BaseException]:
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_given_many_that_wait_when_the_line_is_free_then_one_transaction_takes_them_all() -> None:
    async def scenario(world: World) -> None:
        tasks = asked(world, schema("a"), count("x", 1), schema("b"), schema("c"))

        done = [await one for one in tasks]

        assert len(world.store.sent) == 1
        assert len({one.revision for one in done}) == 1
        assert [one.stamp.catalog_version for one in done] == [2, None, 3, 4]

    led(scenario)


def test_given_one_of_a_batch_that_read_what_is_old_then_only_it_is_told_so() -> None:
    async def scenario(world: World) -> None:
        await world.committer.commit(schema("b"))
        tasks = asked(world, count("x", 1), schema("a"), schema("b"), schema("c"))

        found = await outcomes(tasks)

        assert [type(one) for one in found] == [Committed, Committed, StaleRead, Committed]
        versions = [one.stamp.catalog_version for one in found if isinstance(one, Committed)]
        assert versions == [None, 3, 4]

    led(scenario)


def test_given_a_batch_without_answer_when_sent_again_then_all_are_done_once() -> None:
    async def scenario(world: World) -> None:
        world.store.faults = [lost_answer, lost_request]

        found = await outcomes(asked(world, count("x", 1), schema("a"), count("y", 1)))

        assert all(isinstance(one, Committed) for one in found)
        assert world.store.sent == [world.store.sent[0]] * 3

    led(scenario)


def test_given_a_batch_and_a_lost_fence_then_nobody_is_told_a_guess() -> None:
    async def scenario(world: World) -> None:
        world.store.faults = [lost_answer_and_deposed]

        found = await outcomes(asked(world, schema("a"), schema("b"), schema("b")))

        assert [type(one) for one in found] == [Unknown, Unknown, NotLeader]

    led(scenario)


def test_given_a_store_with_lower_limits_then_its_batches_become_smaller_and_nobody_fails() -> None:
    async def at_most_four(store: Store, request: Request) -> TxnAnswer:
        store.faults.insert(0, at_most_four)
        if len(request.writes) > 4:
            raise Refused("ddl-too-large")
        return await store.apply(request)

    async def scenario(world: World) -> None:
        world.store.faults = [at_most_four]

        found = await outcomes(asked(world, *(count(f"x{number}", 1) for number in range(20))))

        assert all(isinstance(one, Committed) for one in found)
        assert max(len(sent.writes) for sent in world.store.sent[-3:]) <= 8

    led(scenario)


def test_given_changes_of_one_key_when_asked_in_order_then_each_waits_for_one_batch() -> None:
    async def scenario(world: World) -> None:
        others = [count(f"y{number}", 1) for number in range(3)]
        tasks = asked(world, count("x", 1), count("x", 2), others[0], count("x", 3), *others[1:])

        found = await outcomes(tasks)

        assert [type(one) for one in found[:4]] == [Committed, StaleRead, Committed, StaleRead]
        assert len(world.store.sent) <= 4

    led(scenario)
