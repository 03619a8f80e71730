"""The way of statements to the service: those about the catalog go to metasrv, those about rows to
frontends. Of one event loop; it needs neither Arrow nor a parser."""

from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from metasrv.sdk.control.service import ControlService
from metasrv.sdk.rows.frontends import Frontends
from metasrv.sdk.sql.run_sql import SqlOptions, run_sql
from metasrv_base.clock import Clock, SystemClock
from metasrv_base.rng import SystemRng
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.language.sql import StatementResult


@dataclass(frozen=True, slots=True)
class ConnectionTarget:
    """The service, and how it is asked."""

    urls: Sequence[str]
    catalog: str = "main"
    schema: str = "public"
    token: str | None = None
    patience_ms: int = 15_000
    """The time for which a request waits for a service that is silent, in ms."""
    wait_s: float = 60.0
    """Seconds for one `execute`, or one batch of `executemany`."""
    max_lag: int | None = None
    """The age that rows of queries may have, in ms; None: leaders answer, with all rows."""


class ConnectionSession:
    """An open connection. `close` ends it."""

    def __init__(
        self,
        target: ConnectionTarget,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        rng = SystemRng()
        self._target = target
        self._clock = clock or SystemClock()
        self._http = HttpClient(target.urls, transport=transport, token=target.token)
        self._service = ControlService(self._http, rng, patience_ms=target.patience_ms)
        self._frontends = Frontends(self._service, rng, transport, target.token)

    async def open(self) -> None:
        """Asks for the other servers, so that one URL is enough; none need be there."""
        await self._service.learn_servers()

    async def run(self, text: str, results: list[StatementResult]) -> None:
        """Adds the result of each statement to *results* once it is known. Raises as `run_sql`:
        what was added is done."""
        target = self._target
        options = SqlOptions(
            catalog=target.catalog,
            schema=target.schema,
            wait_s=target.wait_s,
            max_lag=target.max_lag,
            on_result=results.append,
        )
        await run_sql(self._service, lambda: self._frontends, self._clock, text, options)

    async def close(self) -> None:
        await self._frontends.close()
        await self._http.close()
