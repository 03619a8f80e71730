"""Schemas and catalogs as resources: made, read and dropped through metasrv."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from pydantic import JsonValue

from metasrv.sdk.control.named_resources import NamedResources
from metasrv.sdk.control.names import SchemaName
from metasrv.sdk.control.service import ChangeOptions, past
from metasrv.sdk.control.tables import CATALOG_VERSIONS, changes, model_of
from metasrv_base.wire.api.snapshots import (
    CatalogPinBody,
    PinList,
    PinRequest,
    SnapshotBody,
    SnapshotRequestBody,
)
from metasrv_base.wire.api.tables import (
    CatalogBody,
    CatalogList,
    CatalogSpec,
    SchemaBody,
    SchemaList,
    SchemaSpec,
)
from metasrv_base.wire.api.tenants import CatalogPatch, named

if TYPE_CHECKING:
    from metasrv_base.wire.api.versions import CatalogChange


TenantFields = Mapping[str, JsonValue]
"""Settings or limits of a catalog by name, as in `GET /v1/catalogs/{catalog}`."""


class HistoryFilters(TypedDict, total=False):
    """Conditions on a change and one of its objects; None: any."""

    operation: str | None
    """The operation, as `add_column`."""
    catalog: str | None
    schema: str | None
    """Its name, or `catalog.schema`."""
    table_id: int | None
    by: str | None
    """The principal."""


class Schemas(NamedResources[SchemaBody]):
    """`client.schemas`. Names are `public` or `main.public`."""

    _body = SchemaBody

    async def create(
        self, name: str, if_not_exists: bool = False, **options: Unpack[ChangeOptions]
    ) -> SchemaBody:
        full_name = SchemaName.parse(name)
        spec = model_of(SchemaSpec, {"name": full_name.schema, "if_not_exists": if_not_exists})
        path = full_name.path.rpartition("/")[0]
        done = await self._service.change("POST", path, spec, **options)
        return await self._after(done, name)

    async def get(self, name: str, as_of: str | None = None) -> SchemaBody:
        return await self._get(name, as_of)

    async def list(self, catalog: str = "main", as_of: str | None = None) -> list[SchemaBody]:
        path = SchemaName(catalog, "x").path.rpartition("/")[0]
        pages = self._service.pages(SchemaList, path, past(as_of), of_catalog=True)
        return [schema async for page in pages for schema in page.schemas]

    async def drop(
        self,
        name: str,
        cascade: bool = False,
        *,
        if_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> bool:
        """Conflict `not-empty` while it holds a table, unless `cascade`: then those go with it.
        False: `if_exists`, and there is no such schema."""
        return await self._drop(name, options, if_exists=if_exists, cascade=cascade)

    def _path(self, name: str) -> str:
        return SchemaName.parse(name).path


class Catalogs(NamedResources[CatalogBody]):
    """`client.catalogs`."""

    _body = CatalogBody

    async def create(
        self,
        name: str,
        if_not_exists: bool = False,
        *,
        settings: TenantFields | None = None,
        limits: TenantFields | None = None,
        **options: Unpack[ChangeOptions],
    ) -> CatalogBody:
        """Creates a catalog with the schema `public`. *limits*: as `{"tables": 100}`."""
        facts = {"settings": settings, "limits": limits}
        new_facts = {field: dict(value) for field, value in facts.items() if value}
        spec = model_of(CatalogSpec, {"name": name, "if_not_exists": if_not_exists, **new_facts})
        done = await self._service.change("POST", "/v1/catalogs", named(spec), **options)
        return await self._after(done, name)

    async def alter(
        self,
        name: str,
        *,
        settings: TenantFields | None = None,
        limits: TenantFields | None = None,
        if_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> CatalogBody | None:
        """Changes the named settings and limits; None as a value: the default, or no limit.
        Conflict `tenant-limit` where the catalog holds more already. None: `if_exists`, and there
        is no such catalog."""
        facts = {"settings": dict(settings or {}), "limits": dict(limits or {})}
        patch = model_of(CatalogPatch, facts)
        body: dict[str, Any] = {"settings": named(patch.settings), "limits": named(patch.limits)}
        if if_exists:
            body["if_exists"] = True
        return await self._alter(name, body, options)

    async def versions(
        self, limit: int = 100, transitions: bool = False, **filters: Unpack[HistoryFilters]
    ) -> "Sequence[CatalogChange]":
        """The changes of all catalogs, the newest first, that meet all *filters*. *transitions*:
        each version by itself."""
        params = {name: value for name, value in filters.items() if isinstance(value, str | int)}
        more = {"transitions": "true"} if transitions else {}
        return await changes(self._service, CATALOG_VERSIONS, {**params, **more}, limit)

    async def snapshot(self, drop_history: bool = False) -> SnapshotBody:
        """Makes a snapshot of all catalogs, and deletes the log that it replaces as far as it may
        go. *drop_history*: at once, as far as nothing pins it."""
        request = SnapshotRequestBody(drop_history=drop_history)
        answer = await self._service.ask("POST", "/v1/catalog/snapshots", request)
        return answer.body(SnapshotBody)

    async def pins(self) -> PinList:
        """Lists what keeps the log of all catalogs."""
        return await self._service.read(PinList, "/v1/catalog/pins")

    async def pin(
        self, name: str, version: int, reason: str, expires_in_s: int = 600
    ) -> CatalogPinBody:
        """Keeps a version and all that follow until the pin expires; again, to renew it."""
        fields = {"name": name, "version": version, "reason": reason, "expires_in_s": expires_in_s}
        request = model_of(PinRequest, fields)
        answer = await self._service.ask("POST", "/v1/catalog/pins", request)
        return answer.body(CatalogPinBody)

    async def unpin(self, name: str) -> None:
        await self._service.ask("DELETE", f"/v1/catalog/pins/{name}")

    async def get(self, name: str, as_of: str | None = None) -> CatalogBody:
        return await self._get(name, as_of)

    async def list(self, as_of: str | None = None) -> list[CatalogBody]:
        pages = self._service.pages(CatalogList, "/v1/catalogs", past(as_of), of_catalog=True)
        return [catalog async for page in pages for catalog in page.catalogs]

    async def drop(
        self,
        name: str,
        cascade: bool = False,
        *,
        if_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> bool:
        """Conflict `not-empty` while it holds a table, or a schema but `public`, unless `cascade`.
        False: `if_exists`, and there is no such catalog."""
        return await self._drop(name, options, if_exists=if_exists, cascade=cascade)

    def _path(self, name: str) -> str:
        return catalog_path(name)


def catalog_path(name: str) -> str:
    return SchemaName(name, "x").path.rpartition("/schemas/")[0]
