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
def hosted(table: FeedTable, wait_s: float = 5.0) -> Iterator[Hosted]:
    portal, host = Portal(), _Host(table, wait_s)
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
    def __init__(self, table: FeedTable, wait_s: float) -> None:
        self._table, self._wait_s = table, wait_s
        self._over = asyncio.Event()
        self.there: Future[tuple[Frontends, ConnectionSession]] = Future()

    async def run(self) -> None:
        async with running(self._table) as bench:
            frontends = Frontends(bench=bench)
            frontends.lead(ONE, OTHER)
            target = ConnectionTarget([URL], wait_s=self._wait_s, patience_ms=2_000)
            self.there.set_result((frontends, ConnectionSession(target, frontends, bench.clock)))
            await self._over.wait()

    async def end(self) -> None:
        self._over.set()
