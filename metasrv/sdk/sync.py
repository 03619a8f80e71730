"""The client for plain code: the asynchronous one, called through a private loop. No logic here.

Its resources and tables are generated from the asynchronous ones (scripts/sync_client.py).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from metasrv.sdk.client import AsyncClient
from metasrv.sdk.portal import Portal
from metasrv.sdk.sync_operations import (
    SyncCluster,
    SyncFailovers,
    SyncNodeBook,
    SyncProcedures,
    SyncRegions,
    SyncSettings,
)
from metasrv.sdk.sync_tables import SyncBatches, SyncCatalogs, SyncIndexes, SyncSchemas, SyncTables

if TYPE_CHECKING:
    from metasrv.sdk.control.apply import ApplyOptions
    from metasrv.sdk.control.events import EventFilters
    from metasrv.sdk.control.views import ViewOptions, ViewRows
    from metasrv.sdk.sql.run_sql import SqlOptions
    from metasrv.sdk.sync_backups import SyncBackups
    from metasrv.sdk.sync_events import SyncEventStream
    from metasrv.sdk.sync_placements import SyncPlacements, SyncTablespaces
    from metasrv.sdk.sync_table import Table
    from metasrv.sdk.sync_views import SyncInformationSchema
    from metasrv_base.wire.language.apply import ApplyBody
    from metasrv_base.wire.language.declared import DesiredState
    from metasrv_base.wire.language.sql import StatementResult


class Client:
    """A context; usable from several threads. Made by `metasrv.sdk.connect`."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        patience_ms: int,
        token: str | None = None,
        expects_running: bool = False,
    ) -> None:
        self._portal = Portal()
        client = AsyncClient(
            urls,
            patience_ms=patience_ms,
            learns=True,
            token=token,
        )
        if expects_running:
            client.expect_running()
        self._client = self._portal.call(client.__aenter__())

    @property
    def urls(self) -> tuple[str, ...]:
        return self._client.urls

    @cached_property
    def tables(self) -> SyncTables:
        return SyncTables(self._portal, self._client.tables)

    @cached_property
    def indexes(self) -> SyncIndexes:
        return SyncIndexes(self._portal, self._client.indexes)

    @cached_property
    def catalogs(self) -> SyncCatalogs:
        return SyncCatalogs(self._portal, self._client.catalogs)

    @cached_property
    def schemas(self) -> SyncSchemas:
        return SyncSchemas(self._portal, self._client.schemas)

    @cached_property
    def batches(self) -> SyncBatches:
        return SyncBatches(self._portal, self._client.batches)

    @cached_property
    def placements(self) -> "SyncPlacements":
        from metasrv.sdk.sync_placements import SyncPlacements

        return SyncPlacements(self._portal, self._client.placements)

    @cached_property
    def tablespaces(self) -> "SyncTablespaces":
        from metasrv.sdk.sync_placements import SyncTablespaces

        return SyncTablespaces(self._portal, self._client.tablespaces)

    @cached_property
    def procedures(self) -> SyncProcedures:
        return SyncProcedures(self._portal, self._client.procedures)

    @cached_property
    def failovers(self) -> SyncFailovers:
        return SyncFailovers(self._portal, self._client.failovers)

    @cached_property
    def nodes(self) -> SyncNodeBook:
        return SyncNodeBook(self._portal, self._client.nodes)

    @cached_property
    def regions(self) -> SyncRegions:
        return SyncRegions(self._portal, self._client.regions)

    @cached_property
    def cluster(self) -> SyncCluster:
        return SyncCluster(self._portal, self._client.cluster)

    @cached_property
    def settings(self) -> SyncSettings:
        return SyncSettings(self._portal, self._client.settings)

    @cached_property
    def information_schema(self) -> "SyncInformationSchema":
        from metasrv.sdk.sync_views import SyncInformationSchema

        return SyncInformationSchema(self._portal, self._client.information_schema)

    @cached_property
    def backups(self) -> "SyncBackups":
        from metasrv.sdk.sync_backups import SyncBackups

        return SyncBackups(self._portal, self._client.backups)

    def table(self, name: str) -> "Table":
        """A handle; asks nothing yet. Keep it: it remembers where the regions are."""
        from metasrv.sdk.sync_table import Table

        return Table(self._portal, self._client.table(name))

    def sql(self, text: str, **options: "Unpack[SqlOptions]") -> "tuple[StatementResult, ...]":
        """Carries out statements of SQL, in order, and returns the result of each: about the
        catalog by metasrv, about rows by frontends. BEGIN; ..; COMMIT is one batch. Errors:
        `metasrv.sdk.sql.run_sql.run_sql`."""
        return self._portal.call(self._client.sql(text, **options))

    def show(self, view: str, **options: "Unpack[ViewOptions]") -> "ViewRows":
        """Reads the rows of a view of the information schema, as `tables` or `procedures`. Raises
        NotFound for a view that there is not, Refused for what a filter means wrongly."""
        return self._portal.call(self._client.show(view, **options))

    def apply(
        self, desired: "DesiredState | Mapping[str, Any]", **options: "Unpack[ApplyOptions]"
    ) -> "ApplyBody":
        """Brings the catalog to a desired state, or shows the plan (`mode="plan"`). Errors:
        `metasrv.sdk.control.apply.run_apply`."""
        return self._portal.call(self._client.apply(desired, **options))

    def export(self, catalog: str = "main", schema: str | None = None) -> "DesiredState":
        """The desired state that makes an equal catalog, or one schema of it. Raises NotFound."""
        return self._portal.call(self._client.export(catalog, schema))

    def events(
        self,
        since: int | None = None,
        until: int | None = None,
        **filters: "Unpack[EventFilters]",
    ) -> "SyncEventStream":
        """Changes of the catalog, as an iterator and a context. It has begun when this
        returns. *since*: the version that the caller knows; default: from now on. *until*: the
        iteration ends when all up to that version was told; default: never."""
        from metasrv.sdk.sync_events import SyncEventStream

        stream = SyncEventStream(self._portal, self._client.events(since, until, **filters))
        stream.begin()
        return stream

    def __repr__(self) -> str:
        return f"<Client of {', '.join(self.urls)}>"

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
