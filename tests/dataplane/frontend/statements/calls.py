"""Statements on the table of the tests, also while the frontend hears of newer versions, and the
rows that they leave."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements import statements
from dataplane.frontend.statements.query import key_of, range_of
from dataplane.frontend.statements.reads import PageOf
from dataplane.frontend.statements.scans import Place
from metasrv_base.errors import MetaError
from metasrv_base.rows.convert import to_json_rows
from metasrv_base.schema.values import Value
from tests.dataplane.frontend.bench import Bench, T

ROWS: list[dict[str, Any]] = [
    {"id": number, "a": number % 3, "b": f"w{number}"} for number in range(9)
]


def rows_of(page: PageOf) -> list[dict[str, Any]]:
    return to_json_rows(page.columns, page.rows)


async def write(bench: Bench, op: Op, rows: Sequence[dict[str, Any]]) -> int:
    """The schema version it was done with."""
    done = await bench.service.writes.rows(T, op, rows, f"s{next(bench.statements)}")
    return done.schema_version


async def all_rows(bench: Bench, limit: int = 1_000) -> list[dict[str, Any]]:
    """By id."""
    opened = await bench.service.scans.begin_rows(T, None)
    page, at = await bench.service.scans.page(opened, Place(), limit)
    found = rows_of(page)
    while at is not None:
        page, at = await bench.service.scans.page(bench.service.scans.current(opened), at, limit)
        found += rows_of(page)
    return sorted(found, key=lambda row: int(row["id"]))


async def indexed(bench: Bench, name: str, limit: int = 100, **asked: list[str]) -> list[Any]:
    opened, place = await bench.service.scans.begin_index(
        T, name, lambda schema: range_of(schema.index(name), asked)
    )
    page, at = await bench.service.scans.page(opened, place, limit)
    found = rows_of(page)
    while at is not None:
        page, at = await bench.service.scans.page(bench.service.scans.current(opened), at, limit)
        found += rows_of(page)
    return found


async def row(bench: Bench, id: int) -> list[dict[str, Any]]:
    def key(layout: Any) -> Sequence[Value]:
        return key_of(layout.key, [str(id)])

    return rows_of(await bench.service.reads.by_key(T, key))


def outcomes(error: MetaError) -> list[str]:
    regions = error.facts["regions"]
    assert isinstance(regions, list)
    return [one["outcome"] for one in regions]


@asynccontextmanager
async def hearing(bench: Bench) -> AsyncIterator[None]:
    """The frontend hears from the leader that there is no newer catalog, however late."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statements, "CATCH_UP_S_MAX", 60.0)
        async with asyncio.TaskGroup() as group:
            holding = group.create_task(bench.holder.run())
            yield
            holding.cancel()


async def write_while(
    bench: Bench, act: Callable[[], Awaitable[object]], op: Op, changed: dict[str, Any]
) -> int:
    """*act* happens when the batch is on its way to the region. The version it was done with."""

    async def meet(request: httpx.Request) -> None:
        if request.url.path.endswith("/batch"):
            bench.way.meet = None
            await act()

    bench.way.meet = meet
    return await write(bench, op, [changed])
