"""A statement whose answer was lost is never told as undone on the word of a later copy."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest

from dataplane.frontend.planning.row_input import Op, RowInput, from_rows
from dataplane.frontend.statements.regions import SendLog
from dataplane.frontend.statements.writes import WriteRequest
from metasrv_base.errors import Conflict, Refused, Unknown
from metasrv_base.rows.layout import Layout
from metasrv_base.rows.outcome import WriteResult
from tests.dataplane.frontend.bench import Bench, T, running
from tests.dataplane.frontend.tables import A, feed_table, rule

LARGE = feed_table(A, rule("check", 2, expression="c2 > 9"), schema_version=2)
"""A table with a check that the row violates."""
SHORT_S = 0.3
"""Until a statement gives up."""


async def insert(bench: Bench, until_s: float = 10.0) -> WriteResult:
    def read(layout: Layout) -> RowInput:
        return from_rows(layout, [{"id": 1, "a": 5}], Op.INSERT)

    until = asyncio.get_running_loop().time() + until_s
    request = WriteRequest(Op.INSERT, read, "one", until, lambda schema: None)
    done, _ = await bench.service.writes.run(bench.catalog.named(T), request)
    return done


async def forbid(bench: Bench) -> None:
    await bench.raise_floor(LARGE, LARGE.schema_version)
    bench.tell(LARGE)


def lost(bench: Bench, then: Callable[[], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Loses the answer to the first batch; runs *then* before the next one."""

    async def lose(request: httpx.Request) -> None:
        if request.url.path.endswith("/batch"):
            bench.way.meet = bench.way.done = None
            await then()
            raise httpx.ReadTimeout("lost")

    return lose


async def test_given_a_lost_answer_when_the_rows_are_forbidden_since_then_it_was_done() -> None:
    async with running(feed_table(A)) as bench:
        bench.way.done = lost(bench, lambda: forbid(bench))

        done = await insert(bench)
        again = await insert(bench)

        assert {one.repeated for one in (*done.regions, *again.regions)} == {True}


async def test_given_a_batch_on_its_way_when_the_rows_are_forbidden_since_then_it_is_unknown() -> (
    None
):
    async with running(feed_table(A)) as bench:
        bench.way.meet = lost(bench, lambda: forbid(bench))

        with pytest.raises(Unknown) as told:
            await insert(bench)
        with pytest.raises(Refused, match="constraint-violated"):
            await insert(bench)

        assert told.value.facts["reason"] == "constraint-violated"


async def test_given_a_lost_answer_when_the_next_leader_says_nothing_then_it_is_unknown() -> None:
    async with running(feed_table(A)) as bench:
        (region,) = bench.table.regions
        moved = bench.table.model_copy(
            update={"regions": (region.model_copy(update={"epoch": 2}),)}
        )

        async def gone(request: httpx.Request) -> None:
            raise httpx.ConnectError("gone")

        async def move() -> None:
            bench.tell(moved)
            bench.way.meet = gone

        bench.way.done = lost(bench, move)
        with pytest.raises(Unknown):
            await insert(bench, SHORT_S)


@pytest.mark.parametrize(
    ("judged", "perhaps"), [((), True), ((1,), True), ((1, 2), False)], ids=repr
)
def test_given_a_silent_leader_then_only_a_later_ones_word_settles_it(
    judged: tuple[int, ...], perhaps: bool
) -> None:
    sent = SendLog()
    sent.lost(1)
    for epoch in judged:
        sent.refused(epoch, Conflict("already-exists"))
    for code in ("schema-version-stale", "stale-epoch", "wrong-cluster"):
        sent.refused(3, Conflict(code))

    assert sent.perhaps is perhaps
