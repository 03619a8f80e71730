"""The size of a region."""

from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.region.format.families import ROWS
from dataplane.region.manifests.manifest import Manifest
from dataplane.region.memory.memory import Memory


@dataclass(frozen=True, slots=True)
class RegionStats:
    rows: int
    """An estimate, without entries: versions in files and memory, superseded ones and tombstones
    too."""
    bytes: int
    """Bytes of files, borrowed ones too, and of the memtables."""
    wal_bytes: int
    """Bytes in this opening's log segments."""
    files: int
    borrowed_bytes: int
    version: int
    """The highest row version given."""
    sequence: int
    memtable_bytes: int


def stats_of(
    manifest: Manifest, memories: Sequence[Memory], wal_bytes: int, version: int, sequence: int
) -> RegionStats:
    files = manifest.files
    in_memory = sum(memory.bytes for memory in memories)
    rows = [memtable for memory in memories if (memtable := memory.of(ROWS)) is not None]
    return RegionStats(
        rows=sum(f.rows for f in files if f.family == ROWS) + sum(m.rows for m in rows),
        bytes=sum(f.bytes for f in files) + in_memory,
        wal_bytes=wal_bytes,
        files=len(files),
        borrowed_bytes=sum(f.bytes for f in files if f.root is not None)
        + sum(s.bytes for s in manifest.sealed if s.root is not None),
        version=version,
        sequence=sequence,
        memtable_bytes=in_memory,
    )
