"""The SDK's one implementation, asynchronous: resources of the control plane, tables of rows.

A resource imports its models when it is first used: a command that lists tables needs neither Arrow
nor the models of nodes.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack
from weakref import WeakSet

import httpx

from metasrv.sdk.control.service import ControlService
from metasrv_base.clock import Clock, SystemClock
from metasrv_base.rng import SystemRng
from metasrv_base.wire.http.client import HttpClient

if TYPE_CHECKING:
    from metasrv.sdk.control.apply import ApplyOptions
    from metasrv.sdk.control.backups import Backups
    from metasrv.sdk.control.batches import Batches
    from metasrv.sdk.control.events import EventFilters, EventStream
    from metasrv.sdk.control.namespaces import Catalogs, Schemas
    from metasrv.sdk.control.operations import (
        Cluster,
        Failovers,
        NodeBook,
        Procedures,
        Regions,
        Settings,
    )
    from metasrv.sdk.control.placements import Placements, Tablespaces
    from metasrv.sdk.control.tables import Indexes, Tables
    from metasrv.sdk.control.views import InformationSchema, ViewOptions, ViewRows
    from metasrv.sdk.rows.access import RowAccess
    from metasrv.sdk.rows.table import AsyncTable
    from metasrv.sdk.sql.run_sql import SqlOptions
    from metasrv_base.wire.language.apply import ApplyBody
    from metasrv_base.wire.language.declared import DesiredState
    from metasrv_base.wire.language.sql import StatementResult

PATIENCE_MS = 15_000
"""The time for which a request waits for a service that does not answer, in ms: an election takes
less."""


class AsyncClient:
    """An async context, for one event loop. Made by `metasrv.sdk.connect_async`."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        patience_ms: int = PATIENCE_MS,
        transport: httpx.AsyncBaseTransport | None = None,
        learns: bool = False,
        token: str | None = None,
    ) -> None:
        """Opens no connection yet. With *learns*, entering the client asks for the other servers,
        so that one URL is enough."""
        self._learns = learns
        self._http = HttpClient(urls, transport=transport, token=token)
        self._rng = SystemRng()
        self.clock: Clock = SystemClock()
        """Says when a statement of a table made from now on was made."""
        self._service = ControlService(self._http, self._rng, patience_ms=patience_ms)
        self._patience_ms = patience_ms
        self._streams: WeakSet[EventStream] = WeakSet()
        self._transport, self._token = transport, token
        self._named_by = tuple(urls)

    def expect_running(self) -> None:
        """Raises errors at once for addresses without a server, until the service has answered
        once. An election is waited for."""
        self._service.expects_running = True

    @property
    def urls(self) -> tuple[str, ...]:
        """URLs of the service, the one that answered last first."""
        return self._http.urls

    @cached_property
    def tables(self) -> "Tables":
        from metasrv.sdk.control.tables import Tables

        return Tables(self._service)

    @cached_property
    def indexes(self) -> "Indexes":
        from metasrv.sdk.control.tables import Indexes

        return Indexes(self._service)

    @cached_property
    def catalogs(self) -> "Catalogs":
        from metasrv.sdk.control.namespaces import Catalogs

        return Catalogs(self._service)

    @cached_property
    def schemas(self) -> "Schemas":
        from metasrv.sdk.control.namespaces import Schemas

        return Schemas(self._service)

    @cached_property
    def batches(self) -> "Batches":
        from metasrv.sdk.control.batches import Batches

        return Batches(self._service)

    @cached_property
    def placements(self) -> "Placements":
        from metasrv.sdk.control.placements import Placements

        return Placements(self._service)

    @cached_property
    def tablespaces(self) -> "Tablespaces":
        from metasrv.sdk.control.placements import Tablespaces

        return Tablespaces(self._service)

    @cached_property
    def procedures(self) -> "Procedures":
        from metasrv.sdk.control.operations import Procedures

        return Procedures(self._service)

    @cached_property
    def failovers(self) -> "Failovers":
        from metasrv.sdk.control.operations import Failovers

        return Failovers(self._service)

    @cached_property
    def nodes(self) -> "NodeBook":
        from metasrv.sdk.control.operations import NodeBook

        return NodeBook(self._service)

    @cached_property
    def regions(self) -> "Regions":
        from metasrv.sdk.control.operations import Regions

        return Regions(self._service)

    @cached_property
    def cluster(self) -> "Cluster":
        from metasrv.sdk.control.operations import Cluster

        return Cluster(self._service)

    @cached_property
    def settings(self) -> "Settings":
        from metasrv.sdk.control.operations import Settings

        return Settings(self._service)

    @cached_property
    def information_schema(self) -> "InformationSchema":
        from metasrv.sdk.control.views import InformationSchema

        return InformationSchema(self._service)

    @cached_property
    def backups(self) -> "Backups":
        from metasrv.sdk.control.backups import Backups

        return Backups(self._http, self._transport)

    @cached_property
    def _rows(self) -> "RowAccess":
        from metasrv.sdk.rows.access import RowAccess

        return RowAccess(self._service, self._rng, self._transport, self._token, self._named_by)

    def table(self, name: str) -> "AsyncTable":
        """A handle; asks nothing yet. Keep it: it remembers where the regions are."""
        return self._rows.table(name, self.clock)

    async def sql(
        self, text: str, **options: "Unpack[SqlOptions]"
    ) -> "tuple[StatementResult, ...]":
        """Carries out statements of SQL, in order, and returns the result of each: about the
        catalog by metasrv, about rows by frontends. BEGIN; ..; COMMIT is one batch. Errors:
        `metasrv.sdk.sql.run_sql.run_sql`."""
        from metasrv.sdk.sql.run_sql import run_sql

        return await run_sql(self._service, lambda: self._rows.frontends, self.clock, text, options)

    async def show(self, view: str, **options: "Unpack[ViewOptions]") -> "ViewRows":
        """Reads the rows of a view of the information schema, as `tables` or `procedures`. Raises
        NotFound for a view that there is not, Refused for what a filter means wrongly."""
        return await self.information_schema.rows(view, **options)

    async def apply(
        self, desired: "DesiredState | Mapping[str, Any]", **options: "Unpack[ApplyOptions]"
    ) -> "ApplyBody":
        """Brings the catalog to a desired state, or shows the plan (`mode="plan"`). Errors:
        `metasrv.sdk.control.apply.run_apply`."""
        from metasrv.sdk.control.apply import run_apply

        return await run_apply(self._service, desired, options)

    async def export(self, catalog: str = "main", schema: str | None = None) -> "DesiredState":
        """The desired state that makes an equal catalog, or one schema of it. Raises NotFound."""
        from metasrv.sdk.control.apply import export

        return await export(self._service, catalog, schema)

    def events(
        self,
        since: int | None = None,
        until: int | None = None,
        **filters: "Unpack[EventFilters]",
    ) -> "EventStream":
        """Changes of the catalog: an async iterator. *since*: the version that the caller
        knows; default: from when it is begun, by `async with` or the first item. *until*: the
        iteration ends when all up to that version was told; default: never."""
        from metasrv.sdk.control.events import EventSource, EventStream

        may_ask_again = self._service.may_ask_again
        source = EventSource(
            self._http, self._rng, self._patience_ms, self._transport, may_ask_again
        )
        stream = EventStream(source, since, until, filters)
        self._streams.add(stream)
        return stream

    def __repr__(self) -> str:
        return f"<AsyncClient of {', '.join(self.urls)}>"

    async def __aenter__(self) -> Self:
        if self._learns:
            await self._service.learn_servers()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if "_rows" in self.__dict__:
            await self._rows.close()
        for stream in tuple(self._streams):
            await stream.close()
        await self._http.close()
