"""Commands about placements and tablespaces of a batch that depend on who uses them: what the
commands before them leave counts."""

from dataclasses import dataclass
from typing import Any

from keys.key import Key, Range
from keys.model.log import Entry
from keys.model.placing.placements import DEFAULT_PROFILE, PlacedTableKey, PlacementKey
from keys.model.placing.tablespaces import GroupedTableKey
from keys.model.tables import TableInfoKey
from metasrv_base.concurrency.turns import Turns, slices
from procedures.commands.in_order import PLANNED_AT_ONCE, ListingView, SweepCommand
from procedures.commands.placement_commands import (
    AlterPlacementCommand,
    DropPlacementCommand,
    PlacementChanges,
)
from procedures.commands.tablespace_commands import DropTablespaceCommand
from procedures.steps.users import NAMED_MAX, refuse_if_named


@dataclass(frozen=True, slots=True)
class SweptAlterPlacement(SweepCommand):
    """An `AlterPlacementCommand` that is checked against the profiles that tables use at its
    commit."""

    name: str
    placement_id: int
    changes: PlacementChanges

    def keys(self) -> tuple[Key[Any], ...]:
        return (PlacementKey(self.name),)

    def ranges(self) -> tuple[Range, ...]:
        takes_profiles = self.changes.storage_profiles is not None
        return (PlacedTableKey.under(self.placement_id),) if takes_profiles else ()

    def planning(self, view: ListingView) -> Turns[tuple[Entry, ...]]:
        in_use = dict[str, str]()
        if self.ranges():
            users = yield from view.inside(PlacedTableKey, self.placement_id)
            for some in slices(users, PLANNED_AT_ONCE):
                for key in some:
                    use = view.get(key)
                    assert use is not None
                    profile = use.storage_profile or DEFAULT_PROFILE
                    if profile not in in_use:
                        in_use[profile] = _name_of(key.table_id, view)
                yield
        return AlterPlacementCommand(self.name, self.placement_id, self.changes, in_use).plan(view)


@dataclass(frozen=True, slots=True)
class SweptDrop(SweepCommand):
    """A *drop* that is refused if tables use the object at its commit."""

    drop: DropPlacementCommand | DropTablespaceCommand

    def keys(self) -> tuple[Key[Any], ...]:
        return self.drop.keys()

    def ranges(self) -> tuple[Range, ...]:
        return self.drop.empty()

    def planning(self, view: ListingView) -> Turns[tuple[Entry, ...]]:
        drop = self.drop
        entries = drop.plan(view)
        users: tuple[PlacedTableKey | GroupedTableKey, ...]
        if isinstance(drop, DropPlacementCommand):
            users = yield from view.inside(PlacedTableKey, drop.placement_id)
        else:
            users = yield from view.inside(GroupedTableKey, drop.tablespace_id)
        name = f"{drop.word} {drop.full_name(drop.name)}"
        named = [_name_of(key.table_id, view) for key in users[:NAMED_MAX]]
        refuse_if_named(name, named, len(users))
        return entries


def _name_of(table_id: int, view: ListingView) -> str:
    info = view.get(TableInfoKey(table_id))
    return f"table {table_id}" if info is None else info.full_name
