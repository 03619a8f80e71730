"""Reads of one row that come while others are under way go together, and lose nothing by it."""

import asyncio
import json

import httpx
import pytest

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements import regions
from dataplane.frontend.statements.grouped_reads import GROUP_KEYS, IN_FLIGHT
from metasrv_base.errors import MetaError
from tests.dataplane.frontend.bench import Bench, T, running
from tests.dataplane.frontend.tables import A, B, feed_table

READERS = 30
Rows = list[dict[str, object]]


async def _filled(bench: Bench, count: int = READERS, text: str = "x") -> None:
    rows = [{"id": one, "a": one, "b": text} for one in range(count)]
    await bench.service.writes.rows(T, Op.UPSERT, rows, f"fill-{text[:8]}")


async def _row(bench: Bench, id: int) -> Rows | MetaError:
    try:
        page = await bench.service.reads.by_key(T, lambda layout: [id])
    except MetaError as error:
        return error
    found: Rows = page.rows.to_pylist()
    return found


class Gate:
    """Holds requests of one kind back on their way to the node."""

    def __init__(self, bench: Bench, kind: str = "get") -> None:
        self.open = asyncio.Event()
        self.busy = asyncio.Event()
        """As many requests are under way as may be."""
        self.keys: list[int] = []
        """The number of keys of each request."""
        self._kind = kind
        bench.way.meet = self._meet

    async def _meet(self, request: httpx.Request) -> None:
        if request.url.path.endswith(f"/{self._kind}"):
            self.keys.append(len(json.loads(request.content)["keys"]))
            if len(self.keys) == IN_FLIGHT:
                self.busy.set()
            await self.open.wait()


async def _reads(
    bench: Bench, group: asyncio.TaskGroup, ids: range
) -> tuple[Gate, list[asyncio.Task[Rows | MetaError]]]:
    """Under way: the first are with the node, the others wait."""
    gate = Gate(bench)
    tasks = [group.create_task(_row(bench, id)) for id in ids]
    await gate.busy.wait()
    for _ in range(100):
        await asyncio.sleep(0)
    return gate, tasks


async def test_given_reads_at_once_when_the_node_is_busy_then_few_requests_answer_all() -> None:
    async with running(feed_table(A, B, regions=1)) as bench, asyncio.TaskGroup() as group:
        await _filled(bench)
        gate, tasks = await _reads(bench, group, range(READERS + 3))

        gate.open.set()
        found = await asyncio.gather(*tasks)

    assert found == [[{"id": one, "a": one, "b": "x"}] for one in range(READERS)] + [[]] * 3
    groups = -(-(READERS + 3 - IN_FLIGHT) // GROUP_KEYS)
    assert len(gate.keys) <= IN_FLIGHT + groups + 1, "the last may find few to take along"


async def test_given_a_read_that_waits_when_a_row_changes_before_it_is_sent_then_it_sees_it() -> (
    None
):
    async with running(feed_table(A, B, regions=1)) as bench, asyncio.TaskGroup() as group:
        await _filled(bench)
        gate, tasks = await _reads(bench, group, range(IN_FLIGHT))
        await _filled(bench, text="newer")
        late = group.create_task(_row(bench, 7))

        gate.open.set()
        await asyncio.gather(*tasks)

        assert await late == [{"id": 7, "a": 7, "b": "newer"}]


async def test_given_readers_that_leave_when_others_wait_then_those_are_answered() -> None:
    async with running(feed_table(A, B, regions=1)) as bench, asyncio.TaskGroup() as group:
        await _filled(bench)
        gate, tasks = await _reads(bench, group, range(READERS))

        for task in [*tasks[:IN_FLIGHT], *tasks[10:15]]:
            task.cancel()
        gate.open.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        again = await _row(bench, 3)

    left = [at for at, one in enumerate(found) if isinstance(one, BaseException)]
    assert left == [*range(IN_FLIGHT), *range(10, 15)]
    for at in set(range(READERS)) - set(left):
        assert found[at] == [{"id": at, "a": at, "b": "x"}]
    assert again == [{"id": 3, "a": 3, "b": "x"}]
    assert not bench.service.reads.regions.together.lanes, "nothing is left behind"


async def test_given_a_group_that_fails_when_its_reads_are_repeated_then_each_goes_by_itself() -> (
    None
):
    async with running(feed_table(A, B, regions=1)) as bench:
        await _filled(bench)
        keys: list[int] = []

        async def meet(request: httpx.Request) -> None:
            keys.append(len(json.loads(request.content)["keys"]))
            await asyncio.sleep(0)
            if keys[-1] > 1:
                raise httpx.ConnectError("gone", request=request)

        bench.way.meet = meet
        found = await asyncio.gather(*(_row(bench, id) for id in range(READERS)))

    assert max(keys) > 1
    assert found == [[{"id": one, "a": one, "b": "x"}] for one in range(READERS)]


async def test_given_rows_too_large_for_one_answer_when_read_together_then_each_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(regions, "ANSWER_BYTES_MAX", 1)
    async with running(feed_table(A, B, regions=1)) as bench, asyncio.TaskGroup() as group:
        await _filled(bench, text="y" * 2_000)
        gate, tasks = await _reads(bench, group, range(READERS))

        gate.open.set()
        found = await asyncio.gather(*tasks)

    assert found == [[{"id": one, "a": one, "b": "y" * 2_000}] for one in range(READERS)]


async def test_given_a_region_that_refuses_when_reads_are_sent_together_then_all_are_told() -> None:
    async with running(feed_table(A, B, regions=1)) as bench, asyncio.TaskGroup() as group:
        await _filled(bench)
        gate, tasks = await _reads(bench, group, range(READERS))
        await bench.drop()

        gate.open.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)

    assert all(isinstance(one, MetaError) for one in found)
