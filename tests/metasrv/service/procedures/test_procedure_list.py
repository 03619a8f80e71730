"""The list of procedures: every one once, newest first, for a few reads however many there were."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest

from keys.model.records import ProcedureHistory, ProcedureHistoryKey
from keys.store.kv import PAGE_KEYS_MAX, Get, KeyPage, Put, Request
from keys.store.memory import MemoryKv
from metasrv.service.bodies.procedure_shapes import ended_body
from metasrv.service.procedures import procedure_list
from metasrv_base.ids import uuid7
from metasrv_base.wire.api.procedures import ProcedureBody
from tests.metasrv.api.held_up import create_held_up
from tests.metasrv.api.rig import DEADLINE_MS, TABLES, Server, leader, spec
from tests.metasrv.service.procedures.pages import HOUR_MS, LIST, all_pages, listed, text_of

SPREADS: Mapping[str, Callable[[int], int]] = {
    "even": lambda number: number * 1_000,
    "in one millisecond": lambda _: 0,
    "in bursts, days apart": lambda number: number // 500 * 24 * HOUR_MS + number % 7,
}


class Counting:
    """A store that counts its reads of ranges."""

    def __init__(self, kv: MemoryKv) -> None:
        self.ranges = 0
        self._range = kv.range

    async def __call__(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        self.ranges += 1
        return await self._range(
            get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
        )


async def with_histories(one: Server, times_ms: Sequence[int]) -> list[str]:
    """Copies of the history of a real procedure, under ids of these times; newest first."""
    answer = await one.client.post(TABLES, json=spec("a"), headers={"Prefer": "wait=10"})
    assert answer.status_code == 201
    (real,) = (await listed(one))[0]
    noise = random.Random(1)
    start, end = ProcedureHistoryKey.under()
    (value,) = (item.value for item in one.kv.dump() if start <= item.key < end)
    ids = [uuid7(at, noise.randbytes(10)) for at in times_ms]
    for first in range(0, len(ids), 100):
        puts = [Put(bytes(ProcedureHistoryKey(id)), value) for id in ids[first : first + 100]]
        await one.kv.txn(Request(writes=tuple(puts)), deadline_ms=DEADLINE_MS)
    return sorted([*ids, real], reverse=True)


@pytest.mark.parametrize("spread", SPREADS)
async def test_given_many_that_are_over_when_listed_in_pages_then_each_is_once_newest_first(
    spread: str,
) -> None:
    async with leader(nodes=1) as one:
        before_ms = one.clock.wall_ms() - 2_000 * HOUR_MS
        times = [before_ms + SPREADS[spread](number) for number in range(700)]
        expected = await with_histories(one, times)
        await create_held_up(one, "b")

        found = await all_pages(one, page_size="97")

    living, over = found[:1], found[1:]
    assert living[0] > expected[0]
    assert over == expected


@pytest.mark.slow
@pytest.mark.parametrize("spread", SPREADS)
async def test_given_ten_times_as_many_when_the_first_page_is_read_then_it_takes_no_more_reads(
    spread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    for count in (400, 4_000):
        async with leader(nodes=1) as one:
            before_ms = one.clock.wall_ms() - 2_000 * HOUR_MS
            times = [before_ms + SPREADS[spread](number) for number in range(count)]
            await with_histories(one, times)
            counting = Counting(one.kv)
            monkeypatch.setattr(one.kv, "range", counting)

            await listed(one, page_size="10")

            reads.append(counting.ranges)

    pages_of_one_instant = 4_000 // PAGE_KEYS_MAX + 2
    assert reads[1] <= reads[0] + 2 + pages_of_one_instant
    assert max(reads) < 60


async def test_given_states_of_the_living_when_asked_for_then_no_history_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with leader(nodes=1) as one:
        await with_histories(one, [one.clock.wall_ms() - number for number in range(200)])
        where = await create_held_up(one, "b")
        counting = Counting(one.kv)
        monkeypatch.setattr(one.kv, "range", counting)

        found, token = await listed(one, state="running,waiting")
        reads = counting.ranges
        with_ends, _ = await listed(one, state="running,succeeded")

        assert [where.rpartition("/")[2]] == found == with_ends[:1]
        assert token is None
        assert reads == 0
        assert len(with_ends) == 100
        one.nodes.gate.set()


async def test_given_times_when_asked_for_then_those_between_alone_are_shown() -> None:
    async with leader(nodes=1) as one:
        before_ms = one.clock.wall_ms() - 1_000 * HOUR_MS
        times = [before_ms + number * HOUR_MS for number in range(10)]
        ids = (await with_histories(one, times))[1:]

        found = await all_pages(one, since=text_of(times[3]), until=text_of(times[6]))
        refused = await one.client.get(LIST, params={"since": "yesterday"})

    assert found == ids[4:7]
    assert refused.status_code == 422


async def test_given_a_resource_when_asked_for_then_its_procedures_alone_are_shown() -> None:
    async with leader(nodes=1) as one:
        (first,) = await with_histories(one, [])
        await create_held_up(one, "b")

        body = (await one.client.get(f"{LIST}/{first}")).json()["resource"]
        by_name = await all_pages(one, resource=body["name"])
        by_id = await all_pages(one, resource=f"{body['type']}:{body['id']}")
        none = await all_pages(one, resource="table:9")

    assert by_name == [first]
    assert by_id[-1:] == [first]
    assert none == []


async def test_given_a_parent_when_asked_for_then_its_children_alone_are_shown() -> None:
    async with leader(nodes=1) as one:
        for path, body in (
            ("/v1/catalogs/main/schemas", {"name": "s"}),
            ("/v1/catalogs/main/schemas/s/tables", spec("a")),
            ("/v1/catalogs/main/schemas/s/tables", spec("b")),
        ):
            made = await one.client.post(path, json=body, headers={"Prefer": "wait=10"})
            assert made.status_code == 201, made.text
        path = "/v1/catalogs/main/schemas/s?cascade=true"
        gone = await one.client.delete(path, headers={"Prefer": "wait=10"})
        assert gone.status_code == 204, gone.text
        (parent,) = await all_pages(one, kind="drop_schema")

        children = await all_pages(one, parent=parent)
        tables = await all_pages(one, kind="drop_table")

    assert len(children) == 2
    assert children == tables


async def test_given_a_procedure_without_progress_when_asked_for_then_it_is_the_stalled_one() -> (
    None
):
    async with leader(nodes=1) as one:
        await with_histories(one, [])
        await create_held_up(one, "b")
        fresh = await all_pages(one, stalled="true")
        for _, entry in one.term.manager.living():
            entry.stalled = True  # as its sweep finds

        (stalled,) = await all_pages(one, stalled="true")
        others = await all_pages(one, stalled="false")

    assert fresh == []
    assert len(others) == 1
    assert stalled not in others


async def test_given_many_that_no_filter_takes_when_listed_then_others_have_turns_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shaped, turns = Counter[int](), [0]
    sound = ended_body

    def shape(procedure: str, history: ProcedureHistory) -> ProcedureBody:
        shaped[turns[0]] += 1
        return sound(procedure, history)

    async def take_turns() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    async with leader(nodes=1) as one:
        await with_histories(one, [one.clock.wall_ms() - number for number in range(1_000)])
        monkeypatch.setattr(procedure_list, "ended_body", shape)

        async with asyncio.TaskGroup() as tasks:
            turning = tasks.create_task(take_turns())
            found, _ = await listed(one, state="rolled_back")
            turning.cancel()

    assert found == []
    assert shaped.total() >= 1_000
    assert max(shaped.values()) <= 2 * procedure_list.LOOKED_AT_ONCE
