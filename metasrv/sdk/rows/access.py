"""Access of one client to the rows of all its tables: connections to frontends and datanodes."""

from collections.abc import Sequence

import httpx

from metasrv.sdk.control.names import TableName
from metasrv.sdk.control.service import ControlService
from metasrv.sdk.rows.binding import Binding
from metasrv.sdk.rows.frontends import Frontends
from metasrv.sdk.rows.table import AsyncTable
from metasrv_base.clock import Clock
from metasrv_base.rng import Rng
from metasrv_base.rows.nodes import NodePools


class RowAccess:
    """Tables made by one client share it. `close` ends the connections."""

    def __init__(
        self,
        service: ControlService,
        rng: Rng,
        transport: httpx.AsyncBaseTransport | None,
        token: str | None,
        named_by: Sequence[str],
    ) -> None:
        """Opens no connection yet. *named_by* are the servers that name the datanodes."""
        self._service = service
        self._rng = rng
        self._nodes = NodePools(transport, token, named_by)
        self._frontends = Frontends(service, rng, transport, token)

    def table(self, name: str, clock: Clock) -> AsyncTable:
        binding = Binding(self._service, TableName.parse(name), clock)
        return AsyncTable(binding, self._frontends, self._nodes, self._rng, clock)

    @property
    def frontends(self) -> Frontends:
        return self._frontends

    async def close(self) -> None:
        await self._nodes.close()
        await self._frontends.close()
