"""Placements and tablespaces as resources: made, read, changed and dropped through metasrv."""

from collections.abc import Mapping
from typing import Any, Unpack
from urllib.parse import quote

from metasrv.sdk.control.names import CATALOG
from metasrv.sdk.control.namespaces import catalog_path
from metasrv.sdk.control.service import ChangeOptions, ControlService, DoneChange, past
from metasrv.sdk.control.tables import dropping, model_of
from metasrv_base.errors import Refused
from metasrv_base.wire.api.placing.placements import (
    PlacementBody,
    PlacementList,
    PlacementPatch,
    PlacementSpec,
    PlacingRename,
    TablespaceBody,
    TablespaceList,
    TablespacePatch,
    TablespaceSpec,
)

PLACEMENTS = "/v1/placements"
Spec = PlacementSpec | Mapping[str, Any]
Patch = PlacementPatch | Mapping[str, Any]


class Placements:
    """`client.placements`: how often, on which nodes and by which engines regions are kept."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def create(self, spec: Spec, **options: Unpack[ChangeOptions]) -> PlacementBody:
        """`spec`: a `metasrv_base.wire.api.placing.placements.PlacementSpec`."""
        placement = model_of(PlacementSpec, spec)
        done = await self._service.change("POST", PLACEMENTS, placement, **options)
        return await self._after(done, placement.name)

    async def get(self, name: str, as_of: str | None = None) -> PlacementBody:
        path = _placement_path(name)
        return await self._service.read_catalog(PlacementBody, path, past(as_of))

    async def list(self, as_of: str | None = None) -> list[PlacementBody]:
        pages = self._service.pages(PlacementList, PLACEMENTS, past(as_of), of_catalog=True)
        return [placement async for page in pages for placement in page.placements]

    async def alter(
        self, name: str, patch: Patch, **options: Unpack[ChangeOptions]
    ) -> PlacementBody | None:
        """*patch*: what changes. None: its `if_exists`, and there is no such placement."""
        request, path = model_of(PlacementPatch, patch), _placement_path(name)
        body = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        done = await self._service.change("PATCH", path, body, **options)
        return await self._after(done, name) if done.applied else None

    async def rename(
        self,
        name: str,
        new_name: str,
        *,
        if_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> PlacementBody | None:
        """The tables that use it keep it. None: `if_exists`, and there is no such placement."""
        request = model_of(PlacingRename, {"new_name": new_name, "if_exists": if_exists})
        path = f"{_placement_path(name)}/rename"
        done = await self._service.change("POST", path, request, **options)
        return await self._after(done, new_name) if done.applied else None

    async def drop(
        self, name: str, *, if_exists: bool = False, **options: Unpack[ChangeOptions]
    ) -> bool:
        """Conflict `object-in-use` while a table uses it. False: `if_exists`, and there is no such
        placement."""
        params = dropping(cascade=False, if_exists=if_exists)
        path = _placement_path(name)
        return (await self._service.change("DELETE", path, params=params, **options)).applied

    async def _after(self, done: DoneChange, name: str) -> PlacementBody:
        if done.document is not None:
            return model_of(PlacementBody, done.document)
        return await self.get(name)


class Tablespaces:
    """`client.tablespaces`. Names are `orders` or `main.orders`."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    async def create(
        self,
        name: str,
        comment: str | None = None,
        if_not_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> TablespaceBody:
        catalog, own_name = _parts(name)
        fields = {"name": own_name, "comment": comment, "if_not_exists": if_not_exists}
        spec = model_of(TablespaceSpec, fields)
        done = await self._service.change("POST", _within(catalog), spec, **options)
        return await self._after(done, name)

    async def get(self, name: str, as_of: str | None = None) -> TablespaceBody:
        path = _tablespace_path(name)
        return await self._service.read_catalog(TablespaceBody, path, past(as_of))

    async def list(self, catalog: str = CATALOG, as_of: str | None = None) -> list[TablespaceBody]:
        pages = self._service.pages(TablespaceList, _within(catalog), past(as_of), of_catalog=True)
        return [space async for page in pages for space in page.tablespaces]

    async def alter(
        self,
        name: str,
        comment: str | None,
        *,
        if_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> TablespaceBody | None:
        """*comment*: None removes it. Returns None: `if_exists`, and there is no such
        tablespace."""
        request = model_of(TablespacePatch, {"comment": comment, "if_exists": if_exists})
        path = _tablespace_path(name)
        done = await self._service.change("PATCH", path, request, **options)
        return await self._after(done, name) if done.applied else None

    async def rename(
        self,
        name: str,
        new_name: str,
        *,
        if_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> TablespaceBody | None:
        """*new_name*: without its catalog. None: `if_exists`, and there is no such tablespace."""
        request = model_of(PlacingRename, {"new_name": new_name, "if_exists": if_exists})
        path = f"{_tablespace_path(name)}/rename"
        done = await self._service.change("POST", path, request, **options)
        return await self._after(done, f"{_parts(name)[0]}.{new_name}") if done.applied else None

    async def drop(
        self, name: str, *, if_exists: bool = False, **options: Unpack[ChangeOptions]
    ) -> bool:
        """Conflict `object-in-use` while a table is in it. False: `if_exists`, and there is no such
        tablespace."""
        params = dropping(cascade=False, if_exists=if_exists)
        path = _tablespace_path(name)
        return (await self._service.change("DELETE", path, params=params, **options)).applied

    async def _after(self, done: DoneChange, name: str) -> TablespaceBody:
        if done.document is not None:
            return model_of(TablespaceBody, done.document)
        return await self.get(name)


def _placement_path(name: str) -> str:
    return f"{PLACEMENTS}/{quote(_named(name), safe='')}"


def _within(catalog: str) -> str:
    return f"{catalog_path(catalog)}/tablespaces"


def _tablespace_path(name: str) -> str:
    catalog, own_name = _parts(name)
    return f"{_within(catalog)}/{quote(own_name, safe='')}"


def _parts(name: str) -> tuple[str, str]:
    """Raises Refused `invalid-identifier`."""
    catalog, dot, own_name = name.partition(".")
    return (_named(catalog), _named(own_name)) if dot else (CATALOG, _named(name))


def _named(name: str) -> str:
    """A name that a path can hold: an empty one would be another path."""
    if not name or name in (".", ".."):
        raise Refused("invalid-identifier", name=name or "the empty text")
    return name
