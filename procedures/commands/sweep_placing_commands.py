"""Commands about placements and tablespaces of a batch that depend on who uses them: what the
commands before them leave counts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from keys.key import Key, Range
from keys.model.log import Entry
from keys.model.placing.placements import DEFAULT_PROFILE, PlacedTableKey, PlacementKey
from keys.model.placing.tablespaces import GroupedTableKey
from keys.model.tables import TableInfoKey
from procedures.commands.in_order import ListingView, SweepCommand
from procedures.commands.placement_commands import (
    AlterPlacementCommand,
    DropPlacementCommand,
    PlacementChanges,
)
from procedures.commands.tablespace_commands import DropTablespaceCommand
from procedures.steps.users import NAMED_MAX, refuse_if_named


@dataclass(frozen=True, slots=True)
class SweptAlterPlacement(SweepCommand):
    """As `AlterPlacementCommand`, by the profiles that tables have then."""

    name: str
    placement_id: int
    changes: PlacementChanges

    def keys(self) -> tuple[Key[Any], ...]:
        return (PlacementKey(self.name),)

    def ranges(self) -> tuple[Range, ...]:
        takes_profiles = self.changes.storage_profiles is not None
        return (PlacedTableKey.under(self.placement_id),) if takes_profiles else ()

    def plan(self, view: ListingView) -> tuple[Entry, ...]:
        in_use = dict[str, str]()
        if self.ranges():
            for key in view.inside(PlacedTableKey, self.placement_id):
                use = view.get(key)
                assert use is not None
                profile = use.storage_profile or DEFAULT_PROFILE
                if profile not in in_use:
                    in_use[profile] = _name_of(key.table_id, view)
        return AlterPlacementCommand(self.name, self.placement_id, self.changes, in_use).plan(view)


@dataclass(frozen=True, slots=True)
class SweptDrop(SweepCommand):
    """As *drop*, by the tables that use the object then."""

    drop: DropPlacementCommand | DropTablespaceCommand

    def keys(self) -> tuple[Key[Any], ...]:
        return self.drop.keys()

    def ranges(self) -> tuple[Range, ...]:
        return self.drop.empty()

    def plan(self, view: ListingView) -> tuple[Entry, ...]:
        drop = self.drop
        entries = drop.plan(view)
        users = (
            view.inside(PlacedTableKey, drop.placement_id)
            if isinstance(drop, DropPlacementCommand)
            else view.inside(GroupedTableKey, drop.tablespace_id)
        )
        name = f"{drop.word} {drop.full_name(drop.name)}"
        _must_be_unused(name, (key.table_id for key in users), view)
        return entries


def _must_be_unused(name: str, table_ids: Iterable[int], view: ListingView) -> None:
    ids = sorted(table_ids)
    refuse_if_named(name, [_name_of(table_id, view) for table_id in ids[:NAMED_MAX]], len(ids))


def _name_of(table_id: int, view: ListingView) -> str:
    info = view.get(TableInfoKey(table_id))
    return f"table {table_id}" if info is None else info.full_name
