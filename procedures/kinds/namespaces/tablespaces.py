"""create_, alter_, rename_ and drop_tablespace, under the lock of the catalog (shared)."""

from typing import Any

from keys.catalog.catalog import Catalog
from keys.model.placing.tablespaces import GroupedTableKey, TablespaceInfo, TablespaceKey
from keys.model.records import Lock
from procedures.commands.tablespace_commands import (
    AlterTablespaceCommand,
    CreateTablespaceCommand,
    DropTablespaceCommand,
    RenameTablespaceCommand,
)
from procedures.kinds.namespaces.named_objects import (
    CreatesNamed,
    NamedObjects,
    alter_kind,
    create_kind,
    drop_kind,
    rename_kind,
)
from procedures.locking.locks import catalog_key, exclusive, shared, tablespace_key
from procedures.machine import ProcedureState


class CreateTablespace(CreatesNamed[TablespaceInfo]):
    pass


class NamedTablespace(ProcedureState):
    """A tablespace by its name, and the id that the name resolved to."""

    catalog: str
    name: str
    tablespace_id: int


class AlterTablespace(NamedTablespace):
    comment: str | None
    """The comment; None removes it."""


class RenameTablespace(NamedTablespace):
    new_name: str


class DropTablespace(NamedTablespace):
    pass


def _locks(subject: Any, names: tuple[str, ...]) -> tuple[Lock, ...]:
    keys = (tablespace_key(subject.catalog, name) for name in names)
    return (shared(catalog_key(subject.catalog)), *map(exclusive, keys))


TABLESPACES = NamedObjects(
    word="tablespace",
    id_of=lambda subject: subject.tablespace_id,
    full_name=lambda subject, name: f"{subject.catalog}.{name}",
    key=lambda subject: TablespaceKey(subject.catalog, subject.name),
    users=GroupedTableKey.under,
    locks=_locks,
)


def _create(state: CreateTablespace, catalog: Catalog) -> CreateTablespaceCommand:
    return CreateTablespaceCommand(state.info, state.if_not_exists)


def _alter(state: AlterTablespace, catalog: Catalog) -> AlterTablespaceCommand:
    return AlterTablespaceCommand(state.catalog, state.name, state.tablespace_id, state.comment)


def _rename(state: RenameTablespace, catalog: Catalog) -> RenameTablespaceCommand:
    return RenameTablespaceCommand(state.catalog, state.name, state.tablespace_id, state.new_name)


def _drop(state: DropTablespace, catalog: Catalog) -> DropTablespaceCommand:
    return DropTablespaceCommand(state.catalog, state.name, state.tablespace_id)


CREATE_TABLESPACE = create_kind(TABLESPACES, CreateTablespace, _create)
ALTER_TABLESPACE = alter_kind(TABLESPACES, AlterTablespace, _alter)
RENAME_TABLESPACE = rename_kind(TABLESPACES, RenameTablespace, _rename)
DROP_TABLESPACE = drop_kind(TABLESPACES, DropTablespace, _drop)
