"""A view of the information schema as data: its columns, where its rows come from, one function."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import orjson

from keys.catalog.catalog import Catalog
from metasrv.service.bodies.shapes import time_of
from metasrv.service.nearby import hint
from metasrv.service.state.state import ServerState
from metasrv.service.views.scope import ViewScope
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.wire.node.nodes import RegionStat

ViewType = Literal["string", "int64", "float64", "boolean", "timestamp(ms)"]
ViewValue: TypeAlias = str | int | float | bool | None
"""A value of a row; of a timestamp the number of ms since the Unix epoch."""
Row: TypeAlias = tuple[ViewValue, ...]
Position: TypeAlias = tuple[str | int, ...]
"""The place of a unit in the order of its view."""
Units: TypeAlias = Sequence[tuple[Position, Any]]
"""Some units with their positions, in order; may be empty, where others may go first."""


@dataclass(frozen=True, slots=True)
class ViewColumn:
    name: str
    type: ViewType
    meaning: str


@dataclass(frozen=True, slots=True)
class ViewFacts:
    """The facts that rows are made of: one catalog, and what else the server knows."""

    catalog: Catalog
    addresses: Mapping[str, str]
    """Node id -> base URL."""
    reports: Mapping[str, Mapping[str, RegionStat]]
    """Node -> region id -> what the node last said of it; empty but for views of a leader."""


@dataclass(frozen=True, slots=True)
class CatalogUnits:
    """Units of one version of the catalog, by a pure function: as of any version, by any server."""

    units: Callable[[Catalog, ViewScope, Position | None], Iterator[Units]]
    """All units that the scope selects, from the position on, itself included; None: all."""


@dataclass(frozen=True, slots=True)
class LiveUnits:
    """Units of what a server knows now."""

    units: Callable[[ServerState, ViewFacts, ViewScope, Position | None], AsyncIterator[Units]]
    """Units of the view, as those of `CatalogUnits`. Of a view with one row for each unit, the unit
    at the position may be left out: its row was told."""
    is_leaders: bool = True
    """Whether only the leader knows them."""
    is_versioned: bool = False
    """Whether they are of a version of the catalog too."""


@dataclass(frozen=True)
class View:
    """A view: its columns, the source of its units, and the rows of one unit."""

    name: str
    meaning: str
    columns: tuple[ViewColumn, ...]
    source: CatalogUnits | LiveUnits
    rows: Callable[[ViewFacts, Any], Iterable[Row]]
    """Makes the rows of one unit; pure."""
    needs_reports: bool = False
    """Whether rows have what nodes report, which only the leader knows."""
    narrowed_by: tuple[str, ...] = ()
    """Columns whose `= constant` in a filter saves work."""

    @property
    def is_leaders(self) -> bool:
        is_live = isinstance(self.source, LiveUnits) and self.source.is_leaders
        return is_live or self.needs_reports

    @property
    def is_versioned(self) -> bool:
        """Whether rows are of one version of the catalog, and `as_of` is taken."""
        return isinstance(self.source, CatalogUnits) or self.source.is_versioned

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Column -> its position in a row."""
        return {column.name: position for position, column in enumerate(self.columns)}

    @cached_property
    def types(self) -> tuple[ColumnType, ...]:
        return tuple(parse_type(column.type) for column in self.columns)


def near_column(view: View, name: str) -> dict[str, object]:
    """The fact `did_you_mean`, if a column comes close, or differs in case alone; otherwise
    `existing`, the names of all."""
    lower = name.lower()
    if lower in view.places:
        return {"did_you_mean": lower}
    close = hint(lower, view.places.keys())
    return {**close} if close else {"existing": list(view.places)}


def json_value(type: ColumnType, value: ViewValue) -> ViewValue:
    """A value as JSON shows it: a timestamp as RFC 3339."""
    if type.name == "timestamp" and isinstance(value, int):
        return time_of(value)
    return value


def yes_no(value: bool) -> str:
    """A boolean as the information schema of the SQL standard has it."""
    return "YES" if value else "NO"


def json_text(value: object) -> str:
    """A value of several parts as one text: JSON, names in order."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
