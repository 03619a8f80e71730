"""Rows of a region's snapshot, as a job reads them."""

from dataplane.pipelines.jobs.entry_files import rows_at_mark
from dataplane.region.disk.disk import Disk
from dataplane.region.format.columns import columns_told
from dataplane.region.format.key_range import KeyRange
from metasrv_base.wire.node.inputs import Snapshot
from tests.dataplane.region.rig import Contents


def rows_of(disk: Disk, snapshot: Snapshot, keys: KeyRange | None = None) -> Contents:
    columns = columns_told(snapshot.columns)
    found: Contents = {}
    for part in rows_at_mark(disk, snapshot, keys or KeyRange(), columns):
        table = part.to_pydict()
        assert max(table["_version"]) <= snapshot.version
        pairs = zip(table["c1"], table["c2"], strict=True)
        found |= dict(zip(table["_key"], pairs, strict=True))
    return found
