"""The changes of placements and tablespaces between two versions of the catalog. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from keys.catalog.catalog import Catalog
from keys.model import log
from keys.model.log import CatalogUpdate
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import DEFAULT_TABLESPACE, TablespaceInfo
from metasrv.service.catalog.change_text import text_of
from metasrv_base.wire.api.procedures import ResourceBody
from metasrv_base.wire.api.versions import (
    AlteredObject,
    CatalogOperation,
    ChangedObject,
    CreatedObject,
    DroppedObject,
    RenamedObject,
)

Placed = PlacementInfo | TablespaceInfo
UNSHOWN = frozenset({"name", "version"})


def placing_changes(
    updates: Sequence[CatalogUpdate], before: Catalog, after: Catalog
) -> Iterator[ChangedObject]:
    """Yields what is different in *after*, of the placements and tablespaces that *updates* name;
    each object by its id, so one that was dropped and made again is told as both. The tablespace
    `default` comes and goes with its catalog, and is not told."""
    placements, catalogs = _named(updates)
    yield from _changes(
        "placement", _by_id(before, placements), _by_id(after, placements), is_told=_always
    )
    for catalog in catalogs:
        had = {info.tablespace_id: info for info in _spaces(before, catalog)}
        has = {info.tablespace_id: info for info in _spaces(after, catalog)}
        yield from _changes("tablespace", had, has, is_told=_is_no_default)


def placing_names(updates: Sequence[CatalogUpdate]) -> Iterator[str]:
    """Full names that the entries of *updates* name."""
    for entry in (entry for update in updates for entry in update.entries):
        match entry:
            case log.PlacementCreated(info=info) | log.PlacementAltered(info=info):
                yield info.name
            case log.PlacementRenamed(name=name, info=info):
                yield from (name, info.name)
            case log.PlacementDropped(name=name):
                yield name
            case log.TablespaceCreated(info=space) | log.TablespaceAltered(info=space):
                yield f"{space.catalog}.{space.name}"
            case log.TablespaceRenamed(name=name, info=space):
                yield from (f"{space.catalog}.{name}", f"{space.catalog}.{space.name}")
            case log.TablespaceDropped(catalog=catalog, name=name):
                yield f"{catalog}.{name}"
            case _:
                continue


def _named(updates: Sequence[CatalogUpdate]) -> tuple[list[str], list[str]]:
    """Names of placements, and catalogs of tablespaces, in order."""
    names = list(dict.fromkeys(placing_names(updates)))
    catalogs = (name.partition(".")[0] for name in names if "." in name)
    return [name for name in names if "." not in name], list(dict.fromkeys(catalogs))


def _by_id(catalog: Catalog, names: Sequence[str]) -> dict[int, PlacementInfo]:
    placements = catalog.placing.placements
    return {placements[name].placement_id: placements[name] for name in names if name in placements}


def _spaces(catalog: Catalog, name: str) -> Sequence[TablespaceInfo]:
    return tuple(catalog.placing.tablespaces_of(name).values())


def _changes(
    what: str,
    before: Mapping[int, Placed],
    after: Mapping[int, Placed],
    *,
    is_told: Callable[[Placed], bool],
) -> Iterator[ChangedObject]:
    for number in sorted({*before, *after}):
        old, new = before.get(number), after.get(number)
        either = old or new
        assert either is not None
        if not is_told(either):
            continue
        for operation in _operations(what, old, new):
            name = full_name(either)
            resource = ResourceBody(type=what, id=str(number), name=name)
            text = text_of(name, operation)
            yield ChangedObject(resource=resource, operation=operation, text=text)


def _operations(what: str, old: Placed | None, new: Placed | None) -> Iterator[CatalogOperation]:
    if old is None:
        yield CreatedObject.model_validate({"op": f"create_{what}"})
    elif new is None:
        yield DroppedObject.model_validate({"op": f"drop_{what}"})
    else:
        if old.name != new.name:
            named = {"op": f"rename_{what}", "new_name": full_name(new)}
            yield RenamedObject.model_validate(named)
        fields = [
            name for name in type(new).model_fields if getattr(old, name) != getattr(new, name)
        ]
        if shown := [name for name in fields if name not in UNSHOWN]:
            yield AlteredObject.model_validate({"op": f"alter_{what}", "fields": shown})


def full_name(info: Placed) -> str:
    return info.name if isinstance(info, PlacementInfo) else f"{info.catalog}.{info.name}"


def _always(info: Placed) -> bool:
    return True


def _is_no_default(info: Placed) -> bool:
    return info.name != DEFAULT_TABLESPACE
