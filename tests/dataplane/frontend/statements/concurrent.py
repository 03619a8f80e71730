"""Statements that run while the frontend hears of newer versions."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements import statements
from tests.dataplane.frontend.bench import Bench
from tests.dataplane.frontend.statements.calls import (
    write,
)


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
