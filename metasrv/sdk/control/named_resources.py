"""Objects of the catalog that paths name, as resources: what their classes do in the same way."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from metasrv.sdk.control.service import ChangeOptions, ControlService, DoneChange, past
from metasrv.sdk.control.tables import dropping, model_of
from metasrv_base.wire.api.placing.placements import PlacingRename
from metasrv_base.wire.model import WireModel

B = TypeVar("B", bound=WireModel)


class NamedResources(ABC, Generic[B]):
    """The base of `client.catalogs`, `schemas`, `placements` and `tablespaces`."""

    _body: type[B]
    """The model of one of them."""

    def __init__(self, service: ControlService) -> None:
        self._service = service

    @abstractmethod
    def _path(self, name: str) -> str:
        """The path of the one that is named so."""

    async def _get(self, name: str, as_of: str | None = None) -> B:
        return await self._service.read_catalog(self._body, self._path(name), past(as_of))

    async def _after(self, done: DoneChange, name: str) -> B:
        """The object as a change has left it."""
        if done.document is not None:
            return model_of(self._body, done.document)
        return await self._get(name)

    async def _alter(
        self, name: str, body: WireModel | dict[str, object], options: ChangeOptions
    ) -> B | None:
        done = await self._service.change("PATCH", self._path(name), body, **options)
        return await self._after(done, name) if done.applied else None

    async def _rename(
        self, name: str, renamed: tuple[str, str], if_exists: bool, options: ChangeOptions
    ) -> B | None:
        """Renames an object. *renamed* is its new name, and the same in full."""
        new_name, full_name = renamed
        request = model_of(PlacingRename, {"new_name": new_name, "if_exists": if_exists})
        path = f"{self._path(name)}/rename"
        done = await self._service.change("POST", path, request, **options)
        return await self._after(done, full_name) if done.applied else None

    async def _drop(
        self, name: str, options: ChangeOptions, *, if_exists: bool, cascade: bool = False
    ) -> bool:
        path, params = self._path(name), dropping(cascade=cascade, if_exists=if_exists)
        return (await self._service.change("DELETE", path, params=params, **options)).applied
