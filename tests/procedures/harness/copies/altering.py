"""Lives of tables with copies whose elements change or whose rows are checked, and how they may
end."""

from functools import partial

from keys.model.tables import TableInfo
from keys.store.kv import Compare
from metasrv_base.elements.states import ElementState
from procedures.kinds.alter.alter_table import WAIT_MS
from tests.fakes.cluster import Cluster
from tests.procedures.harness.checking import CHECKS, faults_found
from tests.procedures.harness.constraints import CONSTRAINS, constrained
from tests.procedures.harness.copies.copied_ends import following
from tests.procedures.harness.copies.copied_tables import (
    COPIES,
    copied_info,
    copied_route,
    put_copied_table,
    with_copied_table,
)
from tests.procedures.harness.ends import TABLE, Check, End, is_true, no_rest
from tests.procedures.harness.importing import BROUGHT, IMPORTS, PATH, imported
from tests.procedures.harness.online import (
    INDEX,
    INDEXES,
    UNINDEXES,
    VALIDATES,
    index_filled,
    index_gone,
    index_validated,
    is_as,
)
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import NODES, put_schema, reserve_ids


def indexed() -> TableInfo:
    info = copied_info(TABLE, "t", 3)
    return info.model_copy(update={"indexes": (INDEX,), "next_index_id": 2})


async def with_copied_index(cluster: Cluster, fence: Compare) -> None:
    """Table t, as `with_copied_table`, has an index without entries."""
    await with_copied_info(cluster, fence, indexed())


async def with_copied_index_not_valid(cluster: Cluster, fence: Compare) -> None:
    left = INDEX.model_copy(update={"state": ElementState.WRITE_ONLY})
    await with_copied_info(cluster, fence, indexed().model_copy(update={"indexes": (left,)}))


async def with_copied_info(cluster: Cluster, fence: Compare, info: TableInfo) -> None:
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1",) * 3, COPIES)
    await put_copied_table(cluster, fence, info, route)


async def with_copied_files(cluster: Cluster, fence: Compare) -> None:
    await with_copied_table(cluster, fence)
    cluster.plane.brought[PATH] = BROUGHT


def of_copies(check: Check) -> Check:
    """*check*, and every copy that follows knows what its leader does."""
    return lambda end: [*check(end), *same_at_copies(end), *following(end, TABLE), *no_rest(end)]


def same_at_copies(end: End) -> list[str]:
    """Checks schema, floor, dead indexes, marks, rows and entries in the folders of the sets."""
    folders = end.cluster.plane.storage.folders
    wrong = []
    for region in end.regions(TABLE):
        leader = folders[region["root"]]
        for copy in region.get("copies", ()):
            own = folders[copy["root"]]
            is_same = (
                (own.schema_version, own.schema_floor)
                == (leader.schema_version, leader.schema_floor)
                and own.dead_indexes == leader.dead_indexes
                and own.marks == leader.marks
                and (own.rows, own.entries) == (leader.rows, leader.entries)
            )
            if copy["role"] == "in-sync":
                wrong += is_true(is_same, f"{copy['root']} has {own}, its leader {leader}")
    return wrong


def as_before(info: TableInfo, end: End) -> list[str]:
    """Undone: the table is *info*, and no mark is open."""
    folders = [end.cluster.plane.storage.folders[region["root"]] for region in end.regions(TABLE)]
    marks = [folder.marks for folder in folders if folder.marks]
    return [*is_as(end, info), *is_true(not marks, f"marks {marks}")]


def never_filled(end: End) -> list[str]:
    """Undone: an index of which regions have heard is dead, with all its entries."""
    folders = [end.cluster.plane.storage.folders[region["root"]] for region in end.regions(TABLE)]
    entries = [folder.entries for folder in folders if folder.entries]
    has_heard = any(folder.schema_version > 1 for folder in folders)
    dead = {folder.dead_indexes for folder in folders}
    return [
        *as_before(copied_info(TABLE, "t", 3), end),
        *is_true(not entries, f"entries {entries}"),
        *is_true(not has_heard or dead == {frozenset({INDEX.id})}, f"dead {dead}"),
    ]


def still_not_valid(end: End) -> list[str]:
    states = [index["state"] for index in end.tables()["public.t"]["indexes"]]
    return is_true(states == ["write-only"], f"the index is {states}")


ALTERING_SCENARIOS = (
    Scenario(
        "create_index, with copies",
        "create_index",
        INDEXES,
        with_copied_table,
        {FULL: of_copies(index_filled)},
        deadline_ms=WAIT_MS,
        awaits_heartbeats=True,
        undone=of_copies(never_filled),
    ),
    Scenario(
        "validate_index, with copies",
        "validate_index",
        VALIDATES,
        with_copied_index_not_valid,
        {FULL: of_copies(index_validated)},
        deadline_ms=WAIT_MS,
        awaits_heartbeats=True,
        undone=of_copies(still_not_valid),
    ),
    Scenario(
        "import_table, with copies",
        "import_table",
        IMPORTS,
        with_copied_files,
        {FULL: of_copies(imported)},
        deadline_ms=WAIT_MS,
        awaits_heartbeats=True,
        undone=of_copies(partial(as_before, copied_info(TABLE, "t", 3))),
    ),
    Scenario(
        "alter_table, constraints, with copies",
        "alter_table",
        CONSTRAINS,
        with_copied_table,
        {FULL: of_copies(constrained)},
        awaits_heartbeats=True,
        undone=of_copies(partial(as_before, copied_info(TABLE, "t", 3))),
    ),
    Scenario(
        "drop_index, with copies",
        "drop_index",
        UNINDEXES,
        with_copied_index,
        {FULL: of_copies(index_gone)},
        awaits_heartbeats=True,
        undone=of_copies(partial(as_before, indexed())),
    ),
    Scenario(
        "check_table, with copies",
        "check_table",
        CHECKS,
        with_copied_index,
        {FULL: of_copies(faults_found)},
        awaits_heartbeats=True,
        undone=of_copies(partial(as_before, indexed())),
    ),
)
