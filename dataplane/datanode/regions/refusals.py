"""Batches and reads that regions refuse by their table and schema version, and the number that this
node's regions refused since its start: below their floors (P6).

Bounded: what is named by more tables and holders than are kept counts under no name.
"""

from collections import Counter

from dataplane.region.format.schema import RegionSchema
from dataplane.region.manifests.floor import check_floor
from metasrv_base.errors import MetaError, NotFound, Unavailable
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.node.batches import BatchHeader, ReadHeader
from metasrv_base.wire.node.nodes import RefusedStat

NAMES_MAX = 500
NAMELESS = (0, "")


def must_fit_schema(region_id: int, schema: RegionSchema, header: BatchHeader | ReadHeader) -> None:
    """Raises NotFound for a request of another table, Conflict `schema-version-stale` for a version
    below the floor, Unavailable for one that the region has not heard of."""
    if header.table_id != table_of(RegionId(region_id)):
        raise NotFound("table-not-found", table_id=header.table_id, region_id=str(region_id))
    check_floor(schema, header.schema_version)
    if header.schema_version > schema.version:
        reason = f"it has not heard of schema version {header.schema_version} yet"
        raise Unavailable("not-ready", what=f"region {region_id}", reason=reason)


class Refusals:
    def __init__(self) -> None:
        self._counts = Counter[tuple[int, str]]()

    def note(self, error: MetaError, table_id: int, holder: str | None) -> None:
        """Counts *error* if it is a floor's; None: the sender said no name."""
        if error.code != "schema-version-stale" or "floor" not in error.facts:
            return
        name = (table_id, holder or "")
        is_kept = name in self._counts or len(self._counts) < NAMES_MAX
        self._counts[name if is_kept else NAMELESS] += 1

    @property
    def total(self) -> int:
        return self._counts.total()

    def stats(self) -> list[RefusedStat]:
        return [
            RefusedStat(table_id=table_id, holder_id=holder or None, count=count)
            for (table_id, holder), count in sorted(self._counts.items())
        ]
