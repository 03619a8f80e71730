"""Objects of the catalog as files declare them: the desired state that `POST /v1/apply` takes."""

from pydantic import Field

from metasrv_base.wire.api.placing.placements import COMMENT_CHARS_MAX, PlacementShape
from metasrv_base.wire.api.tables import (
    COLUMNS_MAX,
    INDEX_COLUMNS_MAX,
    INDEXES_MAX,
    ColumnSpec,
    Identifier,
    TableShape,
)
from metasrv_base.wire.api.tenants import TenantLimits, TenantSettings
from metasrv_base.wire.model import Listed, WireModel

CONSTRAINTS_MAX = 256
OBJECTS_MAX = 10_000
"""Catalogs, schemas, tables, placements and tablespaces of one desired state: what one version of
the catalog can make."""


class DeclaredColumn(ColumnSpec):
    """A column of a declared table."""

    renamed_from: Identifier | None = None
    """Its earlier name: a column of that name is renamed if there is none of this one."""


class DeclaredIndex(WireModel):
    """An index of a declared table."""

    name: Identifier
    columns: Listed[Identifier] = Field(min_length=1, max_length=INDEX_COLUMNS_MAX)
    """Columns in the order of the index."""
    unique: bool = False
    not_valid: bool = False
    """For a unique index: rows with duplicate values leave it write-only."""


class DeclaredConstraint(WireModel):
    """A constraint of a declared table: a check, or a NOT NULL that old rows may break."""

    name: Identifier
    check: str | None = None
    """A condition over the columns."""
    not_null: Identifier | None = None
    """A column. Only with `not_valid`; one that holds is `nullable: false` of the column."""
    not_valid: bool = False
    """The rows that are there are not looked at."""


class DeclaredTable(TableShape):
    """A table with all its elements: those that it does not name are dropped."""

    columns: Listed[DeclaredColumn] = Field(min_length=1, max_length=COLUMNS_MAX)
    indexes: Listed[DeclaredIndex] = Field(default=(), max_length=INDEXES_MAX)
    constraints: Listed[DeclaredConstraint] = Field(default=(), max_length=CONSTRAINTS_MAX)
    renamed_from: Identifier | None = None
    """Its earlier name in this schema: a table of that name is renamed if there is none of this
    one."""


class DeclaredSchema(WireModel):
    """A schema and its tables."""

    name: Identifier
    options: dict[str, str] | None = None
    """Null: not compared. They cannot be changed."""
    tables: Listed[DeclaredTable] = ()
    """Tables that it does not name stay, unless the request says `prune`."""


class DeclaredTablespace(WireModel):
    """A tablespace of a catalog."""

    name: Identifier
    comment: str | None = Field(default=None, max_length=COMMENT_CHARS_MAX)
    renamed_from: Identifier | None = None


class DeclaredCatalog(WireModel):
    """A catalog (tenant), and what it holds."""

    name: Identifier
    options: dict[str, str] | None = None
    """Null: not compared. They cannot be changed."""
    settings: TenantSettings | None = None
    """Null: not compared; so are those that it does not name."""
    limits: TenantLimits | None = None
    """Null: not compared; so are those that it does not name."""
    tablespaces: Listed[DeclaredTablespace] = ()
    schemas: Listed[DeclaredSchema] = ()


class DeclaredPlacement(PlacementShape):
    """A placement, which all catalogs share."""

    renamed_from: Identifier | None = None


class DesiredState(WireModel):
    """Objects as they are to be. What it does not name stays as it is."""

    placements: Listed[DeclaredPlacement] = ()
    catalogs: Listed[DeclaredCatalog] = ()
