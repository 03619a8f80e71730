"""Inputs of a region that another one has written."""

from dataplane.region.disk.memory_disk import MemoryDisk
from dataplane.region.engine.region import Region
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format import families
from dataplane.region.format.columns import ordered
from dataplane.region.log.sealed_log import read_sealed, sealed_rows
from dataplane.region.manifests.adoption import data_file
from dataplane.region.manifests.manifest import SealedEntry
from dataplane.region.memory.memtable import newest_by_key
from metasrv_base.wire.node.orders import DataFile


def bring(disk: MemoryDisk, region: Region, attempt: str) -> list[DataFile]:
    """Writes what the job writes: copies of files, byte for byte, and the log as a file."""
    borrowed = region.borrowed()
    disk.make_folder(f"{borrowed.root}/{attempt}")
    files = []
    for number, input_file in enumerate(borrowed.files):
        name = f"{attempt}/copy-{number}.parquet"
        data = disk.read(f"{input_file.root}/{input_file.file.name}", 0, input_file.file.bytes)
        disk.create(f"{borrowed.root}/{name}").append(data)
        files.append(input_file.file.model_copy(update={"name": name}))
    for number, segment in enumerate(borrowed.segments):
        entry = SealedEntry(
            root=None, name=segment.name, bytes=segment.bytes, crc32=segment.checksum, rows=0
        )
        log = read_sealed(disk, segment.root, entry)
        for family in (families.ROWS, *borrowed.indexes):
            columns = families.columns_in(family, ordered(region.spec.columns))
            rows = newest_by_key(sealed_rows(log, columns, family))
            if rows.num_rows:
                name = f"{attempt}/log-{number}-{family}.parquet"
                target = FileTarget(disk, borrowed.root, name, columns, family)
                files.append(data_file(write_rows(target, [rows])))
    return files
