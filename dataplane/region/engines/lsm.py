"""The engine `lsm`: sorted files behind a log, on the node's disk."""

from collections.abc import Sequence
from dataclasses import replace

from dataplane.region.engine.region import Region
from dataplane.region.engines.engine import Options
from dataplane.region.format.columns import RegionSpec
from dataplane.region.place import OpenOrder, RegionPlace


class LsmEngine:
    """Implements RegionEngine."""

    def create(
        self,
        region_place: RegionPlace,
        spec: RegionSpec,
        epoch: int,
        replaces: Sequence[str],
        options: Options,
    ) -> Region:
        return Region.create(limited(region_place, options), spec, epoch, replaces)

    def open(self, region_place: RegionPlace, order: OpenOrder, options: Options) -> Region:
        return Region.open(limited(region_place, options), order)


def limited(region_place: RegionPlace, options: Options) -> RegionPlace:
    """The node's memory bounds what a table may ask for."""
    limits = region_place.limits
    if (memtable := options.get("memtable_bytes")) is not None:
        limits = replace(limits, memtable_bytes=min(memtable, limits.memtable_bytes))
    if (age := options.get("flush_age_ms")) is not None:
        limits = replace(limits, flush_age_ms=age)
    return replace(region_place, limits=limits)
