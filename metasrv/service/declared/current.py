"""The catalog as the declaration that would make it: what a difference begins with, and what an
export writes. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from keys.catalog.catalog import Catalog
from keys.catalog.parts.placing import Placing
from keys.model.catalogs import CatalogInfo
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo, default_tablespace
from keys.model.tables import Constraint, ConstraintKind, Index, TableInfo
from metasrv.service.bodies.placement_shapes import placement_definition
from metasrv.service.bodies.shapes import shown_check
from metasrv.service.declared.in_place import default_partition
from metasrv_base.elements.states import ElementState
from metasrv_base.wire.api.placing.placements import PlacementShape
from metasrv_base.wire.api.table_rules import partition_of
from metasrv_base.wire.api.tenants import TenantLimits, TenantSettings
from metasrv_base.wire.language.declared import (
    DeclaredCatalog,
    DeclaredColumn,
    DeclaredConstraint,
    DeclaredIndex,
    DeclaredPlacement,
    DeclaredSchema,
    DeclaredTable,
    DeclaredTablespace,
    DesiredState,
)
from procedures.quorum import own_numbers


@dataclass(frozen=True, slots=True)
class SchemaScope:
    """A schema, and the tables of it that are shown."""

    catalog: str
    schema: str
    tables: frozenset[str] | None = None
    """The names of tables to read; None for all of them."""


def scope_of(desired: DesiredState, *, prune: bool) -> tuple[SchemaScope, ...]:
    """Returns the schemas and tables that a difference from *desired* depends on."""
    return tuple(
        SchemaScope(
            catalog.name,
            schema.name,
            None
            if prune
            else frozenset(
                name
                for table in schema.tables
                for name in (table.name, table.renamed_from)
                if name is not None
            ),
        )
        for catalog in desired.catalogs
        for schema in catalog.schemas
    )


def declared_state(
    catalog: Catalog, catalogs: Iterable[str], schemas: Iterable[SchemaScope]
) -> DesiredState:
    """Returns all placements, the existing ones of *catalogs* with their tablespaces, and the
    existing ones of *schemas*, in order of name."""
    scopes = list(schemas)
    shown = (
        _catalog(catalog, info, [each for each in scopes if each.catalog == name])
        for name in sorted(set(catalogs))
        if (info := catalog.catalogs.get(name)) is not None
    )
    placements = dict(catalog.placing.placements)
    placements.setdefault(catalog.placing.default.name, catalog.placing.default)
    return DesiredState(
        placements=tuple(_placement(placements[name]) for name in sorted(placements)),
        catalogs=tuple(shown),
    )


def _catalog(catalog: Catalog, info: CatalogInfo, scopes: list[SchemaScope]) -> DeclaredCatalog:
    spaces = dict(catalog.placing.tablespaces_of(info.name))
    default = default_tablespace(info)
    spaces.setdefault(default.name, default)
    return DeclaredCatalog(
        name=info.name,
        options=info.options,
        settings=TenantSettings(**info.own_settings.model_dump()),
        limits=TenantLimits.model_validate(info.own_limits.model_dump()),
        tablespaces=tuple(_tablespace(spaces[name]) for name in sorted(spaces)),
        schemas=tuple(
            DeclaredSchema(
                name=scope.schema,
                options=catalog.schemas[info.name, scope.schema].options,
                tables=tuple(_tables(catalog, scope)),
            )
            for scope in sorted(scopes, key=lambda each: each.schema)
            if (info.name, scope.schema) in catalog.schemas
        ),
    )


def _tables(catalog: Catalog, scope: SchemaScope) -> Iterator[DeclaredTable]:
    placing = catalog.placing
    if scope.tables is None:
        for table in catalog.in_schema(scope.catalog, scope.schema):
            yield declared_table(table.info, placing)
        return
    for name in sorted(scope.tables):
        existing = catalog.find(scope.catalog, scope.schema, name)
        if existing is not None:
            yield declared_table(existing.info, placing)


def _placement(info: PlacementInfo) -> DeclaredPlacement:
    definition = placement_definition(info)
    return DeclaredPlacement(
        **{field: getattr(definition, field) for field in PlacementShape.model_fields}
    )


def _tablespace(info: TablespaceInfo) -> DeclaredTablespace:
    return DeclaredTablespace(name=info.name, comment=info.comment)


def declared_table(info: TableInfo, placing: Placing) -> DeclaredTable:
    """The table as users see it. An element on its way in or out is left out; an index or a
    constraint whose rows have not been found right is `not_valid`. Its partition is left out where
    a table that says nothing of it has the same."""
    names = {column.id: column.name for column in info.columns}
    kept_in = placing.names_of(info)
    replicas, minimum = own_numbers(info)
    table = DeclaredTable(
        name=info.name,
        columns=tuple(
            DeclaredColumn(
                name=column.name, type=column.type, nullable=column.nullable, default=column.default
            )
            for column in info.public_columns
        ),
        primary_key=tuple(names[column] for column in info.primary_key),
        partition=partition_of(info.partition, names),
        replicas=replicas,
        min_in_sync=minimum,
        options=info.options,
        colocation_columns=tuple(names[column] for column in info.colocation) or None,
        placement=None if info.placement_id is None else kept_in.placement,
        storage_profile=info.storage_profile,
        tablespace=None if info.tablespace_id is None else kept_in.tablespace,
        indexes=tuple(
            DeclaredIndex(
                name=index.name,
                columns=tuple(names[column] for column in index.columns),
                unique=index.unique,
                not_valid=index.state is not ElementState.PUBLIC,
            )
            for index in info.indexes
            if _is_index(index)
        ),
        constraints=tuple(
            _constraint(each, names) for each in info.constraints if _is_enforced(each)
        ),
    )
    if info.placement_id is None and table.partition == default_partition(table, 1):
        return table.model_copy(update={"partition": None})
    return table


def _is_index(index: Index) -> bool:
    is_not_valid = index.unique and index.state is ElementState.WRITE_ONLY
    return index.state is ElementState.PUBLIC or is_not_valid


def _is_enforced(constraint: Constraint) -> bool:
    is_not_valid = constraint.state is ElementState.WRITE_ONLY and not constraint.holds
    return constraint.state is ElementState.PUBLIC or is_not_valid


def _constraint(constraint: Constraint, names: dict[int, str]) -> DeclaredConstraint:
    is_not_null = constraint.kind is ConstraintKind.NOT_NULL
    return DeclaredConstraint(
        name=constraint.name,
        check=None if is_not_null else shown_check(constraint, names),
        not_null=names[constraint.columns[0]] if is_not_null else None,
        not_valid=not constraint.holds,
    )
