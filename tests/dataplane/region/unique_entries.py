"""Regions with a unique index that a job has filled, before its files are taken."""

from collections.abc import Mapping

import pyarrow as pa

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.columns import KEY, VERSION
from dataplane.region.format.families import ENTRY_COLUMNS, ROWS
from dataplane.region.indexes.index_entries import IndexDef, entries_of
from dataplane.region.manifests.adoption import Ingest, data_file
from metasrv_base.errors import Refused
from metasrv_base.schema.entrycodec import encode_entry
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.offenders import Offenders
from tests.dataplane.region.attempts import ATTEMPT, MARK
from tests.dataplane.region.entries import INDEX, SCHEMA, Place, Value, new_region, write_mixed
from tests.dataplane.region.rig import SPEC, A, Row

BY_TEXT = IndexDef.of(INDEX, [2], SPEC.columns, unique=True)


def entry_key(value: str | None, key: bytes) -> bytes:
    return encode_entry([parse_type("string")], [value], key, unique=True)


def made(region: Region) -> Ingest:
    """Returns the ingest that a job makes of the rows as they are, while the mark is open."""
    disk, root = region.place.disk, region.place.root
    disk.make_folder(f"{root}/{ATTEMPT}")
    parts = [entries_of(pa.Table.from_batches([part]), BY_TEXT) for part in region.reader.scan()]
    files = []
    if parts:
        entries = pa.concat_tables(parts).sort_by([(KEY, "ascending"), (VERSION, "descending")])
        target = FileTarget(disk, root, f"{ATTEMPT}/1.parquet", ENTRY_COLUMNS, INDEX)
        files = [data_file(write_rows(target, [entries]))]
    return Ingest("p-1", ATTEMPT, INDEX, MARK, files, (2,))


def offenders_of(refused: Refused) -> Offenders:
    assert refused.code == "unique-violation"
    return Offenders.model_validate(refused.facts)


def marked(*rows: Mapping[bytes, Row], disk: MemoryDisk | None = None) -> Region:
    region = new_region(disk)
    for number, some in enumerate(rows):
        write_mixed(region, f"s-{number}", {(ROWS, key): row for key, row in some.items()})
        region.maintenance.flush()
    region.set_schema(SCHEMA, MARK)
    return region


def prepared_store() -> tuple[MemoryStore, Ingest]:
    """Two entries lose to tombstones of other rows."""
    store = MemoryStore()
    rows = {b"a": (1, "x"), b"b": (2, "x"), b"c": (3, "y"), b"d": (4, "y"), b"e": (5, "z")}
    region = marked(rows, disk=MemoryDisk(store))
    source = made(region)
    for folder in (f"{A}/{ATTEMPT}", f"{A}/attempts", A):
        region.place.disk.sync_folder(folder)
    for number, (key, value) in enumerate([(b"a", "x"), (b"c", "y")]):
        gone: dict[Place, Value] = {(ROWS, key): None, (INDEX, entry_key(value, key)): None}
        write_mixed(region, f"t-{number}", gone)
    return store, source


MADE, SOURCE = prepared_store()
FILLED = {entry_key("x", b"b"): b"b", entry_key("y", b"d"): b"d", entry_key("z", b"e"): b"e"}
