"""Statements about placements and tablespaces, of what their bodies say."""

from collections.abc import Iterator

from metasrv_base.sql.commands import (
    AlterPlacementStatement,
    AlterTablespaceStatement,
    CreatePlacementStatement,
    CreateTablespaceStatement,
)
from metasrv_base.sql.identifiers import dotted, identifier
from metasrv_base.sql.quoting import quoted
from metasrv_base.wire.api.placing.placements import (
    LabelConditionSpec,
    NodeFilterSpec,
    PlacementPatch,
    PlacementSpec,
    StorageProfileSpec,
)


def create_placement(command: CreatePlacementStatement) -> str:
    spec = command.spec
    condition = "IF NOT EXISTS " if spec.if_not_exists else ""
    fields = spec.model_fields_set - {"name", "if_not_exists"}
    return " ".join([f"CREATE PLACEMENT {condition}{identifier(spec.name)}", *_of(spec, fields)])


def alter_placement(command: AlterPlacementStatement) -> str:
    patch = command.patch
    condition = "IF EXISTS " if patch.if_exists else ""
    fields = patch.model_fields_set - {"if_exists"}
    words = [f"ALTER PLACEMENT {condition}{identifier(command.placement)} SET"]
    reason = [] if patch.reason is None else [f"REASON {quoted(patch.reason)}"]
    return " ".join([*words, *_of(patch, fields), *reason])


def create_tablespace(command: CreateTablespaceStatement) -> str:
    spec = command.spec
    condition = "IF NOT EXISTS " if spec.if_not_exists else ""
    comment = "" if spec.comment is None else f" COMMENT {quoted(spec.comment)}"
    return f"CREATE TABLESPACE {condition}{dotted(command.catalog, spec.name)}{comment}"


def alter_tablespace(command: AlterTablespaceStatement) -> str:
    space, patch = command.tablespace, command.patch
    condition = "IF EXISTS " if patch.if_exists else ""
    comment = "NULL" if patch.comment is None else quoted(patch.comment)
    return f"ALTER TABLESPACE {condition}{dotted(space.catalog, space.name)} SET COMMENT {comment}"


def _of(body: PlacementSpec | PlacementPatch, fields: set[str]) -> Iterator[str]:
    """Yields the clauses of the fields that *body* names."""
    if "replicas" in fields:
        yield f"REPLICAS {body.replicas}"
    if "min_in_sync" in fields and body.min_in_sync is not None:
        yield f"MIN IN SYNC {str(body.min_in_sync).upper()}"
    if "partitions" in fields:
        yield f"PARTITIONS {body.partitions}"
    if "storage_profiles" in fields and body.storage_profiles is not None:
        yield f"STORAGE PROFILES ({', '.join(map(_profile, body.storage_profiles))})"
    if "node_filter" in fields and body.node_filter is not None:
        yield f"ON NODES ({', '.join(_conditions(body.node_filter))})"
    if "preferred_zones" in fields and body.preferred_zones is not None:
        zones = f"({', '.join(map(quoted, body.preferred_zones))})"
        yield f"PREFERRED ZONES {zones if body.preferred_zones else 'NONE'}"
    if "comment" in fields:
        yield f"COMMENT {'NULL' if body.comment is None else quoted(body.comment)}"


def _profile(profile: StorageProfileSpec) -> str:
    options = ", ".join(f"{identifier(name)} = {n}" for name, n in profile.options.items())
    in_parentheses = f" ({options})" if options else ""
    return f"{identifier(profile.name)} ENGINE {identifier(profile.engine)}{in_parentheses}"


def _conditions(nodes: NodeFilterSpec) -> Iterator[str]:
    if nodes.zones:
        yield f"ZONES ({', '.join(map(quoted, nodes.zones))})"
    yield from map(_label, nodes.labels)


def _label(condition: LabelConditionSpec) -> str:
    if condition.one_of is None:
        return f"LABEL {identifier(condition.label)} = {quoted(condition.equals or '')}"
    return f"LABEL {identifier(condition.label)} IN ({', '.join(map(quoted, condition.one_of))})"
