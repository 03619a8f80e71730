"""Histories are kept for their retention and then removed; those that are needed stay."""

from keys.commit.txn import Txn, snapshot
from keys.model.records import Idempotency, IdempotencyKey, ProcedureHistoryKey, ProcedureKey
from keys.store.kv import Put, Request
from metasrv.leadership.retention import Retention
from metasrv_base.ids import uuid7
from tests.metasrv.api.held_up import create_held_up
from tests.metasrv.api.rig import DEADLINE_MS, TABLES, Server, beat, leader, spec

DAY_MS = 86_400_000
WAIT = {"Prefer": "wait=10"}


async def made(one: Server, name: str, **headers: str) -> str:
    """The id of the procedure that made a table."""
    answer = await one.client.post(TABLES, json=spec(name), headers={**WAIT, **headers})
    assert answer.status_code == 201, answer.text
    listed = (await one.client.get("/v1/procedures")).json()["procedures"]
    found: str = listed[0]["id"]
    return found


def kept(one: Server) -> set[str]:
    start, end = ProcedureHistoryKey.under()
    found = [item.key for item in one.kv.dump() if start <= item.key < end]
    return {ProcedureHistoryKey.parse(key).procedure for key in found}


def keys(one: Server) -> set[IdempotencyKey]:
    start, end = IdempotencyKey.under()
    return {IdempotencyKey.parse(i.key) for i in one.kv.dump() if start <= i.key < end}


async def tidy(one: Server, ms: int) -> int:
    one.clock.ahead_ms += ms
    return await Retention(one.term).tidy(one.clock.wall_ms())


async def test_given_histories_when_their_time_is_over_then_they_go_and_not_before() -> None:
    async with leader(nodes=1) as one:
        first = await made(one, "a")
        one.clock.ahead_ms += DAY_MS
        one.term.nodes.heartbeat(beat("dn-1", 2))
        second = await made(one, "b")

        early = await tidy(one, 6 * DAY_MS - 60_000)
        both = kept(one)
        due = await tidy(one, 120_000)

        assert (early, both) == (0, {first, second})
        assert (due, kept(one)) == (1, {second})


async def test_given_a_history_with_a_key_when_its_time_is_over_then_both_go_at_once() -> None:
    async with leader(nodes=1) as one:
        await made(one, "a", **{"Idempotency-Key": "k-1"})

        early = await tidy(one, 7 * DAY_MS - 60_000)
        revision, had = one.kv.revision, keys(one)
        due = await tidy(one, 120_000)

        assert (early, len(had), due) == (0, 1, 1)
        assert (kept(one), keys(one)) == (set(), set())
        assert one.kv.revision == revision + 1


async def test_given_a_key_that_names_another_procedure_then_only_the_history_goes() -> None:
    async with leader(nodes=1) as one:
        await made(one, "a", **{"Idempotency-Key": "k-1"})
        (key,) = keys(one)
        other = Idempotency(procedure=uuid7(1, bytes(10)), fingerprint="f", at_ms=1)
        seen = await snapshot(one.kv, key, deadline_ms=DEADLINE_MS)
        await one.term.committer.commit(Txn.on(seen).put(key, other))

        assert await tidy(one, 8 * DAY_MS) == 1
        assert (kept(one), keys(one)) == (set(), {key})


async def test_given_a_key_that_cannot_be_read_then_it_and_its_history_stay() -> None:
    async with leader(nodes=1) as one:
        procedure = await made(one, "a", **{"Idempotency-Key": "k-1"})
        (key,) = keys(one)
        await one.kv.txn(Request(writes=(Put(bytes(key), b"{}"),)), deadline_ms=DEADLINE_MS)

        assert await tidy(one, 8 * DAY_MS) == 0
        assert (kept(one), keys(one)) == ({procedure}, {key})


async def test_given_a_family_that_is_not_over_then_parent_and_children_stay() -> None:
    async with leader(nodes=1) as one:
        parent, child = await made(one, "a"), await made(one, "b")
        where = await create_held_up(one, "c")
        living = where.rpartition("/")[2]
        await relate(one, living, parent)
        await name_parent(one, child, living)

        held = await tidy(one, 8 * DAY_MS)

        assert held == 0
        assert kept(one) == {parent, child}
        one.nodes.gate.set()


async def test_given_a_shorter_retention_when_set_then_it_holds_and_is_a_day_at_least() -> None:
    async with leader(nodes=1) as one:
        await made(one, "a")
        path = "/v1/settings/history_retention_ms"
        assert (await one.client.put(path, json={"value": DAY_MS - 1})).status_code == 422
        assert (await one.client.put(path, json={"value": DAY_MS})).status_code == 200

        assert await tidy(one, DAY_MS + 60_000) == 1


async def relate(one: Server, procedure: str, parent: str) -> None:
    """The leader knows *procedure* as a child of *parent*."""
    entry = one.term.manager.entry(procedure)
    assert entry is not None
    record = entry.held.record.model_copy(update={"parent": parent})
    key = ProcedureKey(procedure)
    txn = Txn().expecting(key, entry.held.revision).put(key, record)
    committed = await one.term.committer.commit(txn)
    entry.held = type(entry.held)(procedure, record, committed.revision)


async def name_parent(one: Server, procedure: str, parent: str) -> None:
    """The history of *procedure* says that it was a child of *parent*."""
    key = ProcedureHistoryKey(procedure)
    seen = await snapshot(one.kv, key, deadline_ms=DEADLINE_MS)
    history = seen.must(key)
    last = history.last.model_copy(update={"parent": parent})
    txn = Txn.on(seen).put(key, history.model_copy(update={"last": last}))
    await one.term.committer.commit(txn)
