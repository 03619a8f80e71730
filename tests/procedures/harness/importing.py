"""Tables that are given the rows of files, and what must be true when that is over."""

from keys.store.kv import Compare
from metasrv_base.schema.partition import router
from procedures.kinds.tables.import_table import ImportTable
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.disk import Rows
from tests.fakes.datanodes.index_rows import INT64
from tests.procedures.harness.constraints import no_marks
from tests.procedures.harness.ends import TABLE, End, effects, is_true, serving
from tests.procedures.harness.online import with_info
from tests.procedures.harness.tables import (
    NODES,
    put_schema,
    put_table,
    reserve_ids,
    rows_of,
    table_info,
)

PATH = "/in/rows.parquet"
BROUGHT: Rows = frozenset({"1=a", "2=b", "3=c", "4=d", "5=e", "6=f", "7=g", "8=h"})
IMPORTS = ImportTable(catalog="main", schema_name="public", name="t", table_id=TABLE, paths=(PATH,))


async def with_files(cluster: Cluster, fence: Compare) -> None:
    """For a table of three regions, two of them on dn-1."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    await put_table(cluster, fence, table_info(TABLE, "t", 3), ("dn-1", "dn-1", "dn-2"))
    cluster.plane.brought[PATH] = BROUGHT


async def with_one_region(cluster: Cluster, fence: Compare) -> None:
    """So that a life is short."""
    await with_info(cluster, fence, table_info(TABLE, "t", 1))
    cluster.plane.brought[PATH] = BROUGHT


async def with_repeated_keys(cluster: Cluster, fence: Compare) -> None:
    await with_one_region(cluster, fence)
    cluster.plane.brought[PATH] = BROUGHT | {"1=other"}


def imported(end: End) -> list[str]:
    return [*effects(end), *serving(end, TABLE, epoch=1, rows=False), *rows_are_in(end)]


def rows_are_in(end: End) -> list[str]:
    """Each region has its own rows of the files beside those of before, and nothing is open."""
    regions = end.regions(TABLE)
    wrong = no_marks(end)
    for number, region_id in enumerate(one["region_id"] for one in regions):
        found = end.cluster.plane.rows(region_id)
        expected = rows_of(region_id) | belongs_to(number, len(regions))
        wrong += is_true(found == expected, f"region {number} has {found}")
    results = [one["result"] for one in end.agreement.family("__procedure_history").values()]
    said = [one["rows"] for one in results if one and "rows" in one]
    return [*wrong, *is_true(said == [len(BROUGHT)], f"{results}")]


def never_imported(end: End) -> list[str]:
    """As if it had never been asked for."""
    return [*effects(end), *serving(end, TABLE, epoch=1), *no_marks(end)]


def nothing_lies_about(end: End) -> list[str]:
    """Checks that the output of jobs is gone."""
    folders = end.cluster.plane.storage.folders
    left = [folders[region["root"]].attempts for region in end.regions(TABLE)]
    return is_true(not any(left), f"attempts {left}")


def belongs_to(number: int, regions: int) -> Rows:
    way = router(table_info(TABLE, "t", regions).partition, [INT64])
    return frozenset(one for one in BROUGHT if way.number((int(one[0]),)) == number)
