"""The commands of a batch that are about placements and tablespaces."""

from collections.abc import Callable
from typing import Any, TypeAlias

from keys.model.placing.placements import PlacementKey
from keys.model.placing.tablespaces import TablespaceKey
from procedures.commands.in_order import BatchCommand
from procedures.commands.placement_commands import (
    CreatePlacementCommand,
    DropPlacementCommand,
    RenamePlacementCommand,
)
from procedures.commands.sweep_placing_commands import (
    SweptAlterPlacement,
    SweptDrop,
)
from procedures.commands.tablespace_commands import (
    AlterTablespaceCommand,
    CreateTablespaceCommand,
    DropTablespaceCommand,
    RenameTablespaceCommand,
)
from procedures.kinds.namespaces import placements, tablespaces
from procedures.machine import Kind

Make: TypeAlias = Callable[[Any, str], BatchCommand]
"""Makes the command of a state of the kind; the text is the id of the batch."""


def _create_placement(state: placements.CreatePlacement, by: str) -> BatchCommand:
    return CreatePlacementCommand(state.info, state.if_not_exists)


def _alter_placement(state: placements.AlterPlacement, by: str) -> BatchCommand:
    return SweptAlterPlacement(state.name, state.placement_id, state.changes)


def _rename_placement(state: placements.RenamePlacement, by: str) -> BatchCommand:
    return RenamePlacementCommand(state.name, state.placement_id, state.new_name)


def _drop_placement(state: placements.DropPlacement, by: str) -> BatchCommand:
    return SweptDrop(DropPlacementCommand(state.name, state.placement_id))


def _create_tablespace(state: tablespaces.CreateTablespace, by: str) -> BatchCommand:
    return CreateTablespaceCommand(state.info, state.if_not_exists)


def _alter_tablespace(state: tablespaces.AlterTablespace, by: str) -> BatchCommand:
    return AlterTablespaceCommand(state.catalog, state.name, state.tablespace_id, state.comment)


def _rename_tablespace(state: tablespaces.RenameTablespace, by: str) -> BatchCommand:
    return RenameTablespaceCommand(state.catalog, state.name, state.tablespace_id, state.new_name)


def _drop_tablespace(state: tablespaces.DropTablespace, by: str) -> BatchCommand:
    return SweptDrop(DropTablespaceCommand(state.catalog, state.name, state.tablespace_id))


PLACING_MEMBERS: tuple[tuple[Kind[Any], Make], ...] = (
    (placements.CREATE_PLACEMENT, _create_placement),
    (placements.ALTER_PLACEMENT, _alter_placement),
    (placements.RENAME_PLACEMENT, _rename_placement),
    (placements.DROP_PLACEMENT, _drop_placement),
    (tablespaces.CREATE_TABLESPACE, _create_tablespace),
    (tablespaces.ALTER_TABLESPACE, _alter_tablespace),
    (tablespaces.RENAME_TABLESPACE, _rename_tablespace),
    (tablespaces.DROP_TABLESPACE, _drop_tablespace),
)
PLACING_KINDS = frozenset(kind.name for kind, _ in PLACING_MEMBERS)


def placing_key(name: str) -> PlacementKey | TablespaceKey:
    """The key of a placement, or of a tablespace, whose name has the catalog's before it."""
    match name.split("."):
        case [catalog, tablespace]:
            return TablespaceKey(catalog, tablespace)
        case _:
            return PlacementKey(name)
