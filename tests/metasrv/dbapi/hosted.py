"""A connection of the DB-API to a frontend over a real datanode, all on the connection's loop."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass

from metasrv.dbapi.connection import Connection
from metasrv.dbapi.session import ConnectionSession, ConnectionTarget
from metasrv.sdk.portal import Portal
from metasrv_base.wire.frontend.feed import FeedTable
from tests.dataplane.frontend.bench import running
from tests.metasrv.sdk.catalog import URL
from tests.metasrv.sdk.scene import ONE, OTHER, Frontends


@dataclass
class Hosted:
    connection: Connection
    frontends: Frontends


@contextmanager
def hosted(table: FeedTable, wait_s: float = 5.0, max_lag: int | None = None) -> Iterator[Hosted]:
    target = ConnectionTarget([URL], wait_s=wait_s, patience_ms=2_000, max_lag=max_lag)
    portal, host = Portal(), _Host(table, target)
    running_host = asyncio.run_coroutine_threadsafe(host.run(), portal._loop)
    try:
        frontends, session = host.there.result(120)
        with Connection(session, portal) as connection:
            yield Hosted(connection, frontends)
            portal.call(host.end())
            running_host.result(120)
    finally:
        portal.close()


class _Host:
    def __init__(self, table: FeedTable, target: ConnectionTarget) -> None:
        self._table, self._target = table, target
        self._over = asyncio.Event()
        self.there: Future[tuple[Frontends, ConnectionSession]] = Future()

    async def run(self) -> None:
        async with running(self._table) as bench:
            frontends = Frontends(bench=bench)
            frontends.lead(ONE, OTHER)
            session = ConnectionSession(self._target, frontends, bench.clock)
            self.there.set_result((frontends, session))
            await self._over.wait()

    async def end(self) -> None:
        self._over.set()
