"""Lives of tables with copies whose elements change or whose rows are checked, and how they may
end."""

from functools import partial

from keys.model.tables import TableInfo
from keys.store.kv import Compare
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
from tests.procedures.harness.online import INDEX, UNINDEXES, index_gone, is_as
from tests.procedures.harness.scenario import FULL, Scenario
from tests.procedures.harness.tables import NODES, put_schema, reserve_ids


def indexed() -> TableInfo:
    info = copied_info(TABLE, "t", 3)
    return info.model_copy(update={"indexes": (INDEX,), "next_index_id": 2})


async def with_copied_index(cluster: Cluster, fence: Compare) -> None:
    """Table t, as `with_copied_table`, has an index without entries."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1",) * 3, COPIES)
    await put_copied_table(cluster, fence, indexed(), route)


def of_copies(check: Check) -> Check:
    """*check*, and every copy that follows knows what its leader does."""
    return lambda end: [*check(end), *same_at_copies(end), *following(end, TABLE), *no_rest(end)]


def same_at_copies(end: End) -> list[str]:
    """Checks schema, floor, dead indexes and marks in the folders of the sets."""
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
            )
            if copy["role"] == "in-sync":
                wrong += is_true(is_same, f"{copy['root']} has {own}, its leader {leader}")
    return wrong


def as_before(info: TableInfo, end: End) -> list[str]:
    """Undone: the table is *info*, and no mark is open."""
    folders = [end.cluster.plane.storage.folders[region["root"]] for region in end.regions(TABLE)]
    marks = [folder.marks for folder in folders if folder.marks]
    return [*is_as(end, info), *is_true(not marks, f"marks {marks}")]


ALTERING_SCENARIOS = (
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
