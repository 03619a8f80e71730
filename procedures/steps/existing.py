"""Judges a name that is taken: at submit, in a dry run, and in the step, under the locks. Pure."""

from collections.abc import Mapping
from typing import TypeVar

from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import TableInfo
from metasrv_base.errors import Conflict
from metasrv_base.wire.api.table_rules import partition_of
from procedures.quorum import min_in_sync

NamedObject = TableInfo | SchemaInfo | CatalogInfo | PlacementInfo | TablespaceInfo
T = TypeVar("T", bound=NamedObject)
NAMED_MAX = 5
ORDER = "order of columns"


def alike(new: T, existing: T | None, *, if_not_exists: bool) -> T | None:
    """Returns *existing*, which bears the name, if it is what a create of *new* would make.
    None: the name is free.

    Raises Conflict: `already-exists` without *if_not_exists*; `schema-conflict` where *existing*
    has another definition.
    """
    if existing is None:
        return None
    what, name = _named(existing)
    if not if_not_exists:
        must_be_free(what, name, existing)
    differs = _differences(_definition(existing), _definition(new))
    if differs:
        more = {"table_id": existing.table_id} if isinstance(existing, TableInfo) else {}
        raise Conflict("schema-conflict", name=name, differs=differs, **more)
    return existing


def must_be_free(what: str, name: str, existing: object | None) -> None:
    """Raises Conflict("already-exists") where an object bears the name."""
    if existing is not None:
        raise Conflict("already-exists", what=what, name=name)


def _named(existing: NamedObject) -> tuple[str, str]:
    """Returns the type of an object, as errors name it, and its full name."""
    match existing:
        case TableInfo():
            return "table", existing.full_name
        case SchemaInfo():
            return "schema", f"{existing.catalog}.{existing.name}"
        case CatalogInfo():
            return "catalog", existing.name
        case PlacementInfo():
            return "placement", existing.name
        case TablespaceInfo():
            return "tablespace", f"{existing.catalog}.{existing.name}"


def _differences(existing: Mapping[str, object], new: Mapping[str, object]) -> str:
    """Names the parts that differ, at most NAMED_MAX of them; empty for two that are alike."""
    names = [
        name for name in dict.fromkeys([*existing, *new]) if existing.get(name) != new.get(name)
    ]
    if any(name.startswith("column ") for name in names) and ORDER in names:
        names.remove(ORDER)  # a column more or less is another order
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return f"{', '.join(names[:NAMED_MAX])}{more}"


def _definition(info: NamedObject) -> dict[str, object]:
    """Parts by name, equal for two that one request would make, whatever their ids and their past.
    Columns go by their names: one that was renamed, or dropped and made again, has an id of its
    own."""
    if isinstance(info, CatalogInfo):
        return {"options": info.options, "settings": info.settings, "limits": info.limits}
    if isinstance(info, PlacementInfo | TablespaceInfo):
        return info.model_dump(
            exclude={"format", "placement_id", "tablespace_id", "version", "created_at_ms"}
        )
    if not isinstance(info, TableInfo):
        return {"options": info.options}
    names = {column.id: column.name for column in info.columns}
    columns = info.public_columns
    return {
        **{f"column {c.name}": (c.type, c.nullable, c.default) for c in columns},
        ORDER: [column.name for column in columns],
        "primary key": [names[column] for column in info.primary_key],
        "partition": partition_of(info.partition, names),
        "options": info.options,
        "replicas": info.replicas,
        "min in sync": min_in_sync(info),
        "engine": info.engine,
        "engine options": info.engine_options,
        "placement": info.placement_id,
        "storage profile": info.storage_profile,
        "tablespace": info.tablespace_id,
        "colocation columns": [names[column] for column in info.colocation],
    }
