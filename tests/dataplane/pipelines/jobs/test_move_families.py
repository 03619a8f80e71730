"""A region with indexes, moved by a real Spark: entries stay entries, dead indexes stay behind."""

import shutil

import pytest

from dataplane.region.engine.region import Region
from dataplane.region.format.families import ROWS
from dataplane.region.format.schema import RegionSchema
from tests.dataplane.pipelines.conftest import Warm
from tests.dataplane.pipelines.rig import Cluster, move_and_adopt
from tests.dataplane.region.entries import (
    INDEX,
    OTHER,
    SCHEMA,
    Place,
    Value,
    by_index,
    entries_of,
    write_mixed,
)
from tests.dataplane.region.rig import SPEC, contents, order

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="session")]


def dead_with_indexes(cluster: Cluster) -> None:
    """A file of each family, and a log in which an entry of each moves and rows come."""
    region = cluster.create()
    region.set_schema(SCHEMA)
    values: dict[Place, Value] = {(ROWS, b"%02d" % n): (n, "v") for n in range(20)}
    values |= {(INDEX, b"i%02d" % (50 - n)): b"%02d" % n for n in range(20)}
    values |= {(OTHER, b"o%02d" % n): b"%02d" % n for n in range(20)}
    write_mixed(region, "s-1", values)
    region.maintenance.flush()
    write_mixed(region, "s-2", {(INDEX, b"i50"): None, (INDEX, b"a"): b"00", (OTHER, b"o99"): b"x"})
    write_mixed(region, "s-3", {(ROWS, b"99"): (99, None), (INDEX, b"b"): b"99"})
    region.close()


async def test_given_indexes_when_moved_then_entries_are_as_they_were_and_dead_ones_left_behind(
    spark: Warm, cluster: Cluster
) -> None:
    dead_with_indexes(cluster)
    region = cluster.take_over()
    region.set_schema(RegionSchema(3, 1, SPEC.columns, frozenset(), frozenset({OTHER})))
    rows, found = contents(region), by_index(region)

    result = await move_and_adopt(spark.jobs, region)
    region.close()
    shutil.rmtree(cluster.old_root)
    after = Region.open(region.place, order(2))

    assert {file.family for file in result.files} == {ROWS, INDEX}
    assert (contents(after), by_index(after)) == (rows, found)
    assert entries_of(after)[b"a"] == b"00"
    assert len(found) == 21
    assert after.schema.dead >= {OTHER}
