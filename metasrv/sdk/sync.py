"""The client for plain code: the asynchronous one, called through a private loop. No logic here."""

from collections.abc import Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from metasrv.sdk import sync_resources as sync
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.portal import Portal

if TYPE_CHECKING:
    from metasrv.sdk.sync_table import Table


class Client:
    """A context; usable from several threads. Made by `metasrv.sdk.connect`."""

    def __init__(self, urls: Sequence[str], *, patience_ms: int, token: str | None = None) -> None:
        self._portal = Portal()
        self._client = self._portal.call(_opened(urls, patience_ms, token))

    @property
    def urls(self) -> tuple[str, ...]:
        return self._client.urls

    @cached_property
    def tables(self) -> sync.SyncTables:
        return sync.SyncTables(self._portal, self._client.tables)

    @cached_property
    def indexes(self) -> sync.SyncIndexes:
        return sync.SyncIndexes(self._portal, self._client.indexes)

    @cached_property
    def catalogs(self) -> sync.SyncCatalogs:
        return sync.SyncCatalogs(self._portal, self._client.catalogs)

    @cached_property
    def schemas(self) -> sync.SyncSchemas:
        return sync.SyncSchemas(self._portal, self._client.schemas)

    @cached_property
    def procedures(self) -> sync.SyncProcedures:
        return sync.SyncProcedures(self._portal, self._client.procedures)

    @cached_property
    def failovers(self) -> sync.SyncFailovers:
        return sync.SyncFailovers(self._portal, self._client.failovers)

    @cached_property
    def nodes(self) -> sync.SyncNodes:
        return sync.SyncNodes(self._portal, self._client.nodes)

    @cached_property
    def regions(self) -> sync.SyncRegions:
        return sync.SyncRegions(self._portal, self._client.regions)

    @cached_property
    def cluster(self) -> sync.SyncCluster:
        return sync.SyncCluster(self._portal, self._client.cluster)

    @cached_property
    def settings(self) -> sync.SyncSettings:
        return sync.SyncSettings(self._portal, self._client.settings)

    def table(self, name: str) -> "Table":
        """A handle; asks nothing yet. Keep it: it remembers where the regions are."""
        from metasrv.sdk.sync_table import Table

        return Table(self._portal, self._client.table(name))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._portal.call(self._client.close())
        self._portal.close()


async def _opened(urls: Sequence[str], patience_ms: int, token: str | None) -> AsyncClient:
    client = AsyncClient(urls, patience_ms=patience_ms, learns=True, token=token)
    return await client.__aenter__()
