"""Commands about tenants: the settings and limits of a catalog."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from keys.commit.entry_writes import MetadataView
from keys.key import Key
from keys.model.catalogs import CatalogInfo, CatalogNameKey
from keys.model.log import CatalogAltered, Entry
from keys.value import StoredPart
from metasrv_base.errors import Conflict, NotFound
from procedures.commands.command import CatalogCommand

P = TypeVar("P", bound=StoredPart)


@dataclass(frozen=True, slots=True)
class AlterCatalogCommand(CatalogCommand):
    """Sets the named settings and limits, and leaves the others as they are."""

    name: str
    catalog_id: int
    settings: Mapping[str, Any]
    limits: Mapping[str, Any]

    def keys(self) -> tuple[Key[Any], ...]:
        return (CatalogNameKey(self.name),)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        info = view.get(CatalogNameKey(self.name))
        if info is None:
            raise NotFound(what="catalog", name=self.name)
        if info.catalog_id != self.catalog_id:
            raise Conflict("schema-conflict", name=self.name)
        new = patched(info, self.settings, self.limits)
        return () if new == info else (CatalogAltered(info=new),)


def patched(
    info: CatalogInfo, settings: Mapping[str, Any], limits: Mapping[str, Any]
) -> CatalogInfo:
    """A value of None stands for the default."""
    return info.as_tenant(_with(info.own_settings, settings), _with(info.own_limits, limits))


def _with(part: P, values: Mapping[str, Any]) -> P:
    merged = {**part.model_dump(mode="json"), **values}
    fields = {name: value for name, value in merged.items() if value is not None}
    return type(part).model_validate(fields)
