"""create_, alter_, rename_ and drop_placement."""

from keys.catalog.catalog import Catalog
from keys.model.placing.placements import PlacedTableKey, PlacementInfo, PlacementKey
from procedures.commands.placement_commands import (
    AlterPlacementCommand,
    CreatePlacementCommand,
    DropPlacementCommand,
    PlacementChanges,
    RenamePlacementCommand,
)
from procedures.kinds.namespaces.named_objects import (
    CreatesNamed,
    NamedObjects,
    alter_kind,
    create_kind,
    drop_kind,
    rename_kind,
)
from procedures.locking.locks import exclusive, placement_key
from procedures.machine import ProcedureState


class CreatePlacement(CreatesNamed[PlacementInfo]):
    pass


class NamedPlacement(ProcedureState):
    """A placement by its name, and the id that the name resolved to."""

    name: str
    placement_id: int


class AlterPlacement(NamedPlacement):
    changes: PlacementChanges


class RenamePlacement(NamedPlacement):
    new_name: str


class DropPlacement(NamedPlacement):
    pass


PLACEMENTS = NamedObjects(
    word="placement",
    id_of=lambda subject: subject.placement_id,
    full_name=lambda subject, name: name,
    key=lambda subject: PlacementKey(subject.name),
    users=PlacedTableKey.under,
    locks=lambda subject, names: tuple(exclusive(placement_key(name)) for name in names),
)


def _create(state: CreatePlacement, catalog: Catalog) -> CreatePlacementCommand:
    return CreatePlacementCommand(state.info, state.if_not_exists)


def _alter(state: AlterPlacement, catalog: Catalog) -> AlterPlacementCommand:
    in_use = catalog.profiles_in_use(state.placement_id)
    return AlterPlacementCommand(
        state.name, state.placement_id, state.changes, in_use, catalog.revision
    )


def _rename(state: RenamePlacement, catalog: Catalog) -> RenamePlacementCommand:
    return RenamePlacementCommand(state.name, state.placement_id, state.new_name)


def _drop(state: DropPlacement, catalog: Catalog) -> DropPlacementCommand:
    return DropPlacementCommand(state.name, state.placement_id)


CREATE_PLACEMENT = create_kind(PLACEMENTS, CreatePlacement, _create)
ALTER_PLACEMENT = alter_kind(PLACEMENTS, AlterPlacement, _alter)
RENAME_PLACEMENT = rename_kind(PLACEMENTS, RenamePlacement, _rename)
DROP_PLACEMENT = drop_kind(PLACEMENTS, DropPlacement, _drop)
