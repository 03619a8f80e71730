"""The schema versions that a change publishes, and the stages in which two of them are in use."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from dataplane.frontend.catalog.schema import Schema
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.tables import TableInfo
from metasrv.service.state.feed_tables import feed_table
from metasrv_base.elements.states import ElementState
from procedures.elements.element_targets import (
    back,
    moved,
    past_no_return,
    to_end,
    to_last_undoable,
)
from procedures.elements.shifts import shifts
from procedures.kinds.alter.alter_operations import Operation, drafted, edited
from tests.procedures.harness.tables import table_route


@dataclass(frozen=True, slots=True)
class Version:
    info: TableInfo
    schema: Schema

    @classmethod
    def of(cls, info: TableInfo) -> "Version":
        table = CatalogTable(info, table_route(info.table_id, ("dn-1",)), 1)
        return cls(info, Schema.of(feed_table(table)))

    @property
    def fields(self) -> dict[str, str]:
        """The columns that users know: field -> name."""
        return {one.field: one.name for one in self.schema.layout.columns}

    @property
    def filled(self) -> dict[str, Any]:
        """Values of a new row in columns that are written and not visible yet."""
        return {
            f"c{one.id}": one.origin_default if one.default is None else one.default
            for one in self.info.columns
            if one.state is ElementState.WRITE_ONLY
        }


@dataclass(frozen=True, slots=True)
class Stage:
    """A time in which some versions are in use, the older first."""

    name: str
    used: tuple[Version, ...]
    is_reorg: bool = False
    """Rows are read when it begins, and entries taken when it ends."""
    is_known: bool = False
    """It is a stage of another way too, and looked at there: rows are only inserted here."""


def whole_way(info: TableInfo, operations: tuple[Operation, ...]) -> list[Stage]:
    """Every version that a change publishes, to its end."""
    draft, way = drafted(info, operations), _to_last_undoable(info, operations)
    last_undoable = len(way) - 1
    way.append(edited(moved(way[-1], draft.moves, past_no_return), operations))
    way += _on(way[-1], lambda one: moved(one, draft.moves, to_end))
    return list(_stages(way, last_undoable))


def cancelled_way(info: TableInfo, operations: tuple[Operation, ...]) -> list[Stage]:
    """To the last state from which all can be undone, and back. The way there is that of
    `whole_way`."""
    draft, way = drafted(info, operations), _to_last_undoable(info, operations)
    last_undoable = len(way) - 1
    way += _on(way[-1], lambda one: moved(one, draft.moves, back))
    stages = list(_stages(way, last_undoable))
    turn = next(place for place, stage in enumerate(stages) if stage.is_reorg)
    return [replace(one, is_known=place < turn) for place, one in enumerate(stages)]


def _to_last_undoable(info: TableInfo, operations: tuple[Operation, ...]) -> list[TableInfo]:
    draft, to = drafted(info, operations), to_last_undoable
    first = moved(draft.entered, draft.moves, to)
    return [info, first, *_on(first, lambda one: moved(one, draft.moves, to))]


def _on(info: TableInfo, step: Callable[[TableInfo], TableInfo]) -> Iterator[TableInfo]:
    while (following := step(info)) != info:
        info = following
        yield info


def _stages(way: list[TableInfo], last_undoable: int) -> Iterator[Stage]:
    versions = [
        Version.of(info.model_copy(update={"schema_version": number}))
        for number, info in enumerate(way, 1)
    ]
    yield Stage("before", (versions[0],))
    for number, (old, new) in enumerate(pairwise(versions), 1):
        what = ", ".join(f"{one.name} {one.after}" for one in shifts(old.info, new.info))
        yield Stage(f"{number + 1} ({what})", (old, new))
        if number == last_undoable:
            yield Stage(f"{number + 1} (reorg)", (new,), is_reorg=True)
    yield Stage("after", (versions[-1],))


Way = Callable[[TableInfo, tuple[Operation, ...]], list[Stage]]
WAYS: Mapping[str, Way] = {"to its end": whole_way, "cancelled": cancelled_way}
