"""Judges a name that is taken: at submit, in a dry run, and in the step, under the locks. Pure."""

from typing import TypeVar

from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import TableInfo
from metasrv_base.errors import Conflict
from metasrv_base.wire.api.table_rules import partition_of

NamedObject = TableInfo | SchemaInfo | CatalogInfo | PlacementInfo | TablespaceInfo
T = TypeVar("T", bound=NamedObject)


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
    if _definition(existing) != _definition(new):
        more = {"table_id": existing.table_id} if isinstance(existing, TableInfo) else {}
        raise Conflict("schema-conflict", name=name, **more)
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


def _definition(info: NamedObject) -> object:
    """Equal for two that one request would make, whatever their ids and their past. Columns go by
    their names: one that was renamed, or dropped and made again, has an id of its own."""
    if isinstance(info, CatalogInfo):
        return info.options, info.settings, info.limits
    if isinstance(info, PlacementInfo | TablespaceInfo):
        exclude = {"placement_id", "tablespace_id", "version", "created_at_ms"}
        return info.model_dump(exclude=exclude)
    if not isinstance(info, TableInfo):
        return info.options
    names = {column.id: column.name for column in info.columns}
    columns = [(c.name, c.type, c.nullable, c.default) for c in info.public_columns]
    key = [names[column] for column in info.primary_key]
    together = [names[column] for column in info.colocation]
    kept_in = (info.placement_id, info.storage_profile, info.tablespace_id, together)
    stored = (info.options, info.replicas, info.engine, info.engine_options, kept_in)
    return columns, key, partition_of(info.partition, names), stored
