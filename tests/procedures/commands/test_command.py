"""Every command: pure, judged by the keys that it names, and the same in a batch as alone."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from inspect import isabstract
from typing import Any, TypeVar

import pytest

from keys.catalog.catalog import Catalog
from keys.catalog.stored_keys import stored_keys
from keys.commit.entry_writes import writes_of
from keys.commit.txn import Read, Snapshot
from keys.key import Key
from keys.model.catalogs import (
    CatalogInfo,
    CatalogLimits,
    CatalogSettings,
    SchemaInfo,
    SchemaNameKey,
)
from keys.model.log import Entry
from keys.model.placing.placements import (
    PlacedTableKey,
    PlacementInfo,
    PlacementKey,
    StorageProfile,
    default_placement,
)
from keys.model.placing.tablespaces import GroupedTableKey, TablespaceInfo, TablespaceKey
from keys.model.records import ClientRequirements
from keys.model.removed import RemovedTableNameKey
from keys.model.tables import TableNameKey
from keys.value import StoredModel
from metasrv_base.errors import Conflict, Corrupt, NotFound, Refused
from procedures.commands.command import CatalogCommand, change_of
from procedures.commands.drop_commands import (
    DropTableCommand,
    HideTableCommand,
    PurgeTableCommand,
    ShowTableCommand,
)
from procedures.commands.namespace_commands import (
    CreateCatalogCommand,
    CreateSchemaCommand,
    DropCatalogCommand,
    DropSchemaCommand,
)
from procedures.commands.placement_commands import (
    AlterPlacementCommand,
    CreatePlacementCommand,
    DropPlacementCommand,
    PlacementChanges,
    RenamePlacementCommand,
)
from procedures.commands.table_commands import (
    CreateTableCommand,
    RenameTableCommand,
    UndropTableCommand,
)
from procedures.commands.tablespace_commands import (
    AlterTablespaceCommand,
    CreateTablespaceCommand,
    DropTablespaceCommand,
    RenameTablespaceCommand,
)
from procedures.commands.tenant_commands import AlterCatalogCommand
from tests.keys.catalog.logs import first_update, update
from tests.procedures.harness.tables import table_info, table_route

V = TypeVar("V", bound=StoredModel)
CLIENT = ClientRequirements(submitted_by="u", request_id="r", statement={})
ANOTHER = CLIENT.model_copy(update={"table_id": 1024})
TENANT = CatalogInfo(catalog_id=2, name="x", created_at_ms=0)
LIMITED = TENANT.as_tenant(CatalogSettings(drop_retention_ms=60_000), CatalogLimits(tables=3))
SALES = SchemaInfo(schema_id=7, catalog="x", name="sales", created_at_ms=0)
HOT, COLD = (StorageProfile(name=name, engine="lsm") for name in ("hot", "cold"))
MEMORY = StorageProfile(name="hot", engine="memory")
FAST = PlacementInfo(placement_id=1025, name="fast", storage_profiles=(HOT,), created_at_ms=0)
ORDERS = TablespaceInfo(tablespace_id=9, catalog="x", name="orders", created_at_ms=0)


def table(number: int, name: str) -> CreateTableCommand:
    return CreateTableCommand(table_info(number, name, 1), table_route(number, ("dn-1",)))


def name(text: str) -> TableNameKey:
    return TableNameKey("main", "public", text)


def removed(number: int, text: str) -> RemovedTableNameKey:
    return RemovedTableNameKey("main", "public", text, number)


# Each follows the ones before it.
STORY: tuple[CatalogCommand, ...] = (
    CreateCatalogCommand(TENANT),
    CreateSchemaCommand(SALES),
    AlterCatalogCommand("x", 2, {"drop_retention_ms": 60_000}, {"tables": 3}),
    table(1024, "a"),
    table(1025, "b"),
    RenameTableCommand(name("a"), name("c"), 1024, CLIENT),
    RenameTableCommand(name("c"), name("b"), 1024, CLIENT, 1025),
    HideTableCommand(name("b"), 1024, CLIENT),
    ShowTableCommand(1024),
    HideTableCommand(name("b"), 1024, CLIENT),
    DropTableCommand(name("b"), 1024, 5, "p"),
    UndropTableCommand(removed(1024, "b"), name("a"), 1),
    DropTableCommand(name("a"), 1024, 6, "q"),
    PurgeTableCommand(removed(1024, "a"), "q"),
    CreatePlacementCommand(FAST),
    AlterPlacementCommand("fast", 1025, PlacementChanges(storage_profiles=(HOT, COLD))),
    RenamePlacementCommand("fast", 1025, "slow"),
    DropPlacementCommand("slow", 1025),
    CreateTablespaceCommand(ORDERS),
    AlterTablespaceCommand("x", "orders", 9, "c"),
    RenameTablespaceCommand("x", "orders", 9, "o"),
    DropTablespaceCommand("x", "o", 9),
    DropSchemaCommand("x", "sales", 7, "p"),
    DropSchemaCommand("x", "sales", 7),
    DropCatalogCommand("x", 2, "p"),
    DropCatalogCommand("x", 2, tablespaces=("default", "gone")),
)


class KeysOf:
    """The keys of a catalog, or those of them that a command names."""

    def __init__(self, catalog: Catalog, named: Iterable[Key[Any]] | None = None) -> None:
        self.stored = dict(stored_keys(catalog))
        self.named = None if named is None else set(named)

    def get(self, key: Key[V], /) -> V | None:
        if self.named is not None and key not in self.named:
            raise KeyError(key)
        return self.stored.get(key)  # type: ignore[return-value]

    def write(self, entries: Iterable[Entry]) -> None:
        for key, value, _ in writes_of(entries, self):
            self.stored.pop(key, None)
            if value is not None:
                self.stored[key] = value


def begun() -> Catalog:
    return Catalog().apply(first_update(), 1)


def played(commands: Iterable[CatalogCommand]) -> Catalog:
    catalog = begun()
    for command in commands:
        entries = command.plan(KeysOf(catalog))
        catalog = catalog.apply(update(catalog.version + 1, *entries), catalog.version + 1)
    return catalog


OF_BATCHES = {"procedures.commands.free_commands", "procedures.kinds.batch.members"}
"""Commands that tests/metasrv/service/ddl/test_batch.py compares with those of one request each."""


def test_given_the_commands_then_the_story_has_each() -> None:
    commands = concrete(CatalogCommand)
    names = {each.__name__ for each in commands if each.__module__ not in OF_BATCHES}
    assert names == {type(command).__name__ for command in STORY}


def concrete(kind: type) -> Iterator[type]:
    kinds: list[type] = kind.__subclasses__()
    for each in kinds:
        if not isabstract(each):
            yield each
        yield from concrete(each)


@pytest.mark.parametrize("count", range(len(STORY)))
def test_given_a_command_when_planned_then_it_looks_at_its_keys_and_they_follow_its_entries(
    count: int,
) -> None:
    catalog, command = played(STORY[:count]), STORY[count]
    before = KeysOf(catalog, command.keys())

    entries = command.plan(before)
    again = command.plan(before)
    before.write(entries)
    after = catalog.apply(update(catalog.version + 1, *entries), catalog.version + 1)

    assert entries == again != ()
    assert before.stored == dict(stored_keys(after))


def test_given_all_commands_in_one_version_then_they_come_to_the_same_as_one_by_one() -> None:
    """Each is planned on what those before it have made."""
    view, entries = KeysOf(begun()), list[Entry]()
    for command in STORY:
        planned = command.plan(view)
        view.write(planned)
        entries += planned

    together = begun().apply(update(2, *entries), 2)

    one_by_one = dict(stored_keys(played(STORY)))
    assert dict(stored_keys(together)) == one_by_one == view.stored
    at_once = KeysOf(begun())
    at_once.write(entries)
    assert at_once.stored == one_by_one


def test_given_a_command_when_its_change_is_made_then_its_ranges_must_be_empty() -> None:
    drop = DropCatalogCommand("x", 2)
    stored = dict(stored_keys(played(STORY[:1])))
    (key,) = drop.keys()
    read = Snapshot(9, {bytes(key): Read(stored[key], 4)})

    assert change_of(drop, read).empty == {SchemaNameKey.under("x")}
    assert change_of(replace(drop, hidden_by="p"), read).empty == frozenset()
    assert drop.unchanged() == {TablespaceKey.under("x"): 0}
    assert replace(drop, hidden_by="p").unchanged() == {}
    assert DropPlacementCommand("p", 1025).empty() == (PlacedTableKey.under(1025),)
    assert DropTablespaceCommand("x", "o", 9).empty() == (GroupedTableKey.under(9),)


def test_given_profiles_in_use_when_altered_then_no_table_may_come_meanwhile() -> None:
    profiles = PlacementChanges(storage_profiles=(COLD,))
    command = AlterPlacementCommand("fast", 1025, profiles, {}, 7)
    read = Snapshot(9, {bytes(PlacementKey("fast")): Read(FAST, 4)})

    assert change_of(command, read).unchanged == {PlacedTableKey.under(1025): 7}
    assert replace(command, changes=PlacementChanges(comment="c")).unchanged() == {}


def schema(**other: Any) -> SchemaInfo:
    return SALES.model_copy(update=other)


REFUSALS: dict[str, tuple[int, CatalogCommand, type[Exception]]] = {
    "a catalog that is there": (1, CreateCatalogCommand(TENANT), Conflict),
    "a schema of no catalog": (0, CreateSchemaCommand(SALES), NotFound),
    "another schema of that name": (
        2,
        CreateSchemaCommand(schema(options={"a": "b"}), if_not_exists=True),
        Conflict,
    ),
    "a table of no schema": (
        0,
        CreateTableCommand(table_info(1, "t", 1, "no"), table_route(1, ("dn-1",))),
        NotFound,
    ),
    "a table that is there": (4, table(1030, "a"), Conflict),
    "a table of an id that another has": (4, table(1024, "z"), Corrupt),
    "a table of an id that a dropped one has": (11, table(1024, "z"), Corrupt),
    "a rename of another table": (
        5,
        RenameTableCommand(
            name("b"), name("d"), 1024, CLIENT.model_copy(update={"table_id": 1024})
        ),
        Conflict,
    ),
    "a rename to a name that is taken": (
        5,
        RenameTableCommand(name("a"), name("b"), 1024, CLIENT),
        Conflict,
    ),
    "an exchange with no table": (
        4,
        RenameTableCommand(name("a"), name("b"), 1024, CLIENT, 1025),
        NotFound,
    ),
    "a drop of no table": (0, HideTableCommand(name("a"), 1024, CLIENT), NotFound),
    "keys of no table": (0, DropTableCommand(name("a"), 1024, 5, "p"), NotFound),
    "an undrop of a living table": (4, UndropTableCommand(removed(1024, "a"), name("z")), NotFound),
    "an undrop into another schema of that name": (
        11,
        UndropTableCommand(removed(1024, "b"), name("a"), 99),
        Conflict,
    ),
    "a purge of another drop": (13, PurgeTableCommand(removed(1024, "a"), "p"), NotFound),
    "a drop of another schema of that name": (2, DropSchemaCommand("x", "sales", 8), Conflict),
    "a drop of no schema": (0, DropSchemaCommand("x", "sales", 7), NotFound),
    "a drop of another catalog of that name": (1, DropCatalogCommand("x", 3), Conflict),
    "an alter of no catalog": (0, AlterCatalogCommand("x", 2, {}, {}), NotFound),
    "an alter of another catalog of that name": (
        1,
        AlterCatalogCommand("x", 3, {}, {}),
        Conflict,
    ),
    "a drop of no catalog": (0, DropCatalogCommand("x", 2), NotFound),
    "a placement that is there": (15, CreatePlacementCommand(FAST), Conflict),
    "another placement of that name": (
        15,
        CreatePlacementCommand(FAST.model_copy(update={"partitions": 2}), if_not_exists=True),
        Conflict,
    ),
    "other partitions": (
        15,
        AlterPlacementCommand("fast", 1025, PlacementChanges(partitions=2)),
        Refused,
    ),
    "another engine of a profile": (
        15,
        AlterPlacementCommand("fast", 1025, PlacementChanges(storage_profiles=(MEMORY,))),
        Refused,
    ),
    "a profile less that a table has": (
        15,
        AlterPlacementCommand(
            "fast", 1025, PlacementChanges(storage_profiles=(COLD,)), {"hot": "main.public.t"}
        ),
        Conflict,
    ),
    "an alter of no placement": (
        14,
        AlterPlacementCommand("fast", 1025, PlacementChanges()),
        NotFound,
    ),
    "a rename of another placement of that name": (
        15,
        RenamePlacementCommand("fast", 1026, "slow"),
        Conflict,
    ),
    "a rename to a placement that is there": (
        15,
        RenamePlacementCommand("fast", 1025, "fast"),
        Conflict,
    ),
    "a drop of no placement": (14, DropPlacementCommand("fast", 1025), NotFound),
    "a tablespace of no catalog": (0, CreateTablespaceCommand(ORDERS), NotFound),
    "a tablespace of a catalog that goes": (25, CreateTablespaceCommand(ORDERS), NotFound),
    "a tablespace that is there": (19, CreateTablespaceCommand(ORDERS), Conflict),
    "a rename to a tablespace that is there": (
        19,
        RenameTablespaceCommand("x", "orders", 9, "default"),
        Conflict,
    ),
    "a rename of the default tablespace": (
        19,
        RenameTablespaceCommand("x", "default", 2, "o"),
        Conflict,
    ),
    "a drop of the default tablespace": (19, DropTablespaceCommand("x", "default", 2), Conflict),
    "a drop of no tablespace": (18, DropTablespaceCommand("x", "orders", 9), NotFound),
}


@pytest.mark.parametrize(
    "command",
    [
        DropPlacementCommand("default", 1024),
        RenamePlacementCommand("default", 1024, "slow"),
        AlterPlacementCommand("default", 1024, PlacementChanges(storage_profiles=(HOT,))),
    ],
    ids=lambda command: type(command).__name__,
)
def test_given_the_default_placement_when_it_is_to_go_then_refused(
    command: CatalogCommand,
) -> None:
    catalog = played((CreatePlacementCommand(default_placement(0)),))

    with pytest.raises(Conflict) as refused:
        command.plan(KeysOf(catalog))

    assert refused.value.code == "object-in-use"


@pytest.mark.parametrize(("count", "command", "error"), REFUSALS.values(), ids=REFUSALS)
def test_given_metadata_that_a_command_does_not_fit_when_planned_then_refused(
    count: int, command: CatalogCommand, error: type[Exception]
) -> None:
    catalog = played(STORY[:count])

    with pytest.raises(error):
        command.plan(KeysOf(catalog))


@pytest.mark.parametrize(
    "command",
    [
        CreateCatalogCommand(LIMITED, if_not_exists=True),
        CreateSchemaCommand(SALES, if_not_exists=True),
        AlterCatalogCommand("x", 2, {}, {"tables": 3}),
        replace(table(1030, "a"), if_not_exists=True),
        ShowTableCommand(1024),
        ShowTableCommand(9),
    ],
    ids=lambda command: type(command).__name__,
)
def test_given_metadata_as_a_command_wants_it_when_planned_then_no_entries(
    command: CatalogCommand,
) -> None:
    assert command.plan(KeysOf(played(STORY[:4]))) == ()
