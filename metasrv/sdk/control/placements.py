"""Placements and tablespaces as resources: made, read, changed and dropped through metasrv."""

from collections.abc import Mapping
from typing import Any, Unpack
from urllib.parse import quote

from metasrv.sdk.control.named_resources import NamedResources
from metasrv.sdk.control.names import CATALOG
from metasrv.sdk.control.namespaces import catalog_path
from metasrv.sdk.control.service import ChangeOptions, past
from metasrv.sdk.control.tables import model_of
from metasrv_base.errors import Refused
from metasrv_base.wire.api.placing.placements import (
    PlacementBody,
    PlacementList,
    PlacementPatch,
    PlacementSpec,
    TablespaceBody,
    TablespaceList,
    TablespacePatch,
    TablespaceSpec,
)

PLACEMENTS = "/v1/placements"
Spec = PlacementSpec | Mapping[str, Any]
Patch = PlacementPatch | Mapping[str, Any]


class Placements(NamedResources[PlacementBody]):
    """`client.placements`: how often, on which nodes and by which engines regions are kept."""

    _body = PlacementBody

    async def create(self, spec: Spec, **options: Unpack[ChangeOptions]) -> PlacementBody:
        """`spec`: a `metasrv_base.wire.api.placing.placements.PlacementSpec`."""
        placement = model_of(PlacementSpec, spec)
        done = await self._service.change("POST", PLACEMENTS, placement, **options)
        return await self._after(done, placement.name)

    async def get(self, name: str, as_of: str | None = None) -> PlacementBody:
        return await self._get(name, as_of)

    async def list(self, as_of: str | None = None) -> list[PlacementBody]:
        pages = self._service.pages(PlacementList, PLACEMENTS, past(as_of), of_catalog=True)
        return [placement async for page in pages for placement in page.placements]

    async def alter(
        self, name: str, patch: Patch, **options: Unpack[ChangeOptions]
    ) -> PlacementBody | None:
        """Changes a placement by *patch*. Returns None if there is no such placement and the patch
        has `if_exists`. A patch that is computed from the placement as it was read goes with
        `if_match=placement.etag`: Conflict `version-mismatch` if it has changed since."""
        request = model_of(PlacementPatch, patch)
        body = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return await self._alter(name, body, options)

    async def rename(
        self,
        name: str,
        new_name: str,
        *,
        if_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> PlacementBody | None:
        """The tables that use it keep it. None: `if_exists`, and there is no such placement."""
        return await self._rename(name, (new_name, new_name), if_exists, options)

    async def drop(
        self, name: str, *, if_exists: bool = False, **options: Unpack[ChangeOptions]
    ) -> bool:
        """Conflict `object-in-use` while a table uses it. False: `if_exists`, and there is no such
        placement."""
        return await self._drop(name, options, if_exists=if_exists)

    def _path(self, name: str) -> str:
        return f"{PLACEMENTS}/{quote(_named(name), safe='')}"


class Tablespaces(NamedResources[TablespaceBody]):
    """`client.tablespaces`. Names are `orders` or `main.orders`."""

    _body = TablespaceBody

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
        return await self._get(name, as_of)

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
        """Changes the comment; None removes it. Returns None with *if_exists*, if there is no such
        tablespace."""
        request = model_of(TablespacePatch, {"comment": comment, "if_exists": if_exists})
        return await self._alter(name, request, options)

    async def rename(
        self,
        name: str,
        new_name: str,
        *,
        if_exists: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> TablespaceBody | None:
        """Renames a tablespace to *new_name*, which is without its catalog. Returns None with
        *if_exists*, if there is no such tablespace."""
        renamed = new_name, f"{_parts(name)[0]}.{new_name}"
        return await self._rename(name, renamed, if_exists, options)

    async def drop(
        self, name: str, *, if_exists: bool = False, **options: Unpack[ChangeOptions]
    ) -> bool:
        """Conflict `object-in-use` while a table is in it. False: `if_exists`, and there is no such
        tablespace."""
        return await self._drop(name, options, if_exists=if_exists)

    def _path(self, name: str) -> str:
        catalog, own_name = _parts(name)
        return f"{_within(catalog)}/{quote(own_name, safe='')}"


def _within(catalog: str) -> str:
    return f"{catalog_path(catalog)}/tablespaces"


def _parts(name: str) -> tuple[str, str]:
    """Raises Refused `invalid-identifier`."""
    catalog, dot, own_name = name.partition(".")
    return (_named(catalog), _named(own_name)) if dot else (CATALOG, _named(name))


def _named(name: str) -> str:
    """A name that a path can hold: an empty one would be another path."""
    if not name or name in (".", ".."):
        raise Refused("invalid-identifier", name=name or "the empty text")
    return name
