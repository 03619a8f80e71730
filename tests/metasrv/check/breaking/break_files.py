"""Edits of a region's files that break one rule about files."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.names import manifest_name
from dataplane.region.manifests.manifest import (
    FileEntry,
    Manifest,
    decode_manifest,
    encode_manifest,
)
from keys.model.removed import RemovedTableRouteKey
from tests.metasrv.check.breaking.breaking import Breakage
from tests.metasrv.check.cluster import DROPPED, FLIGHTS, WEATHER, Cluster, home_of

MOVED = str(WEATHER << 32)  # it borrows from its old root
REOPENED = str(FLIGHTS << 32)  # it has a sealed segment of its own, and one that grows
PLAIN = str(FLIGHTS << 32 | 1)


async def root_gone(at: Cluster) -> str:
    root = _root(at, PLAIN)
    shutil.rmtree(root)
    return str(root)


async def root_of_a_dropped_table_gone(at: Cluster) -> str:
    (region,) = (await at.read(RemovedTableRouteKey(DROPPED))).route.region_routes
    shutil.rmtree(region.root)
    return str(region.root)


async def higher_fence(at: Cluster) -> str:
    path = _root(at, PLAIN) / "fence-2-1"
    path.write_text("{}")
    return str(path)


async def no_fence(at: Cluster) -> str:
    for fence in _root(at, PLAIN).glob("fence-*"):
        fence.unlink()
    return str(_root(at, PLAIN) / "fence")


async def damaged_manifest(at: Cluster) -> str:
    path = _manifest_path(at, PLAIN)
    path.write_bytes(path.read_bytes().replace(b'"epoch":1', b'"epoch":7', 1))
    return str(_root(at, PLAIN) / "manifest")


async def no_manifest(at: Cluster) -> str:
    for path in _root(at, PLAIN).glob("manifest-*"):
        path.unlink()
    return str(_root(at, PLAIN) / "manifest")


async def old_manifest(at: Cluster) -> str:
    """The takeover raised its fence and never published; yet the route says open."""
    old = at.regions[MOVED].manifest
    root = _root(at, MOVED)
    for path in (*root.glob("manifest-*"), *root.glob("wal-*")):
        path.unlink()
    back = old.model_copy(update={"epoch": 1, "opening": 1, "number": 1, "log_from": 1})
    path = root / manifest_name(back.id)
    path.write_bytes(encode_manifest(back))
    return str(path)


async def file_gone(at: Cluster) -> str:
    path = _file(at, PLAIN)
    path.unlink()
    return str(path)


async def borrowed_file_gone(at: Cluster) -> str:
    path = _file(at, MOVED)
    path.unlink()
    return str(path)


async def bit_flipped(at: Cluster) -> str:
    path = _file(at, PLAIN)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return str(path)


async def row_removed(at: Cluster) -> str:
    """As a bad copy would: a sound Parquet file with one row less."""
    path = _file(at, PLAIN)
    rows = pq.read_table(path)
    pq.write_table(rows.slice(1), path)
    return str(path)


async def row_removed_and_covered_up(at: Cluster) -> str:
    """The manifest was given the new length and checksum; it still says what rows there were."""
    path = await _rewritten(at, PLAIN, lambda rows: rows.slice(1))
    return str(path)


async def value_changed_and_covered_up(at: Cluster) -> str:
    """As many rows, the same keys and versions: only the checksum of the rows tells."""

    def changed(rows: pa.Table) -> pa.Table:
        notes = pa.array(["forged"] * rows.num_rows, pa.string())
        return rows.set_column(rows.schema.get_field_index("c2"), rows.schema.field("c2"), notes)

    return str(await _rewritten(at, PLAIN, changed))


async def rows_out_of_order(at: Cluster) -> str:
    """All that the manifest says of the file is true: only the order is not."""

    def mixed(rows: pa.Table) -> pa.Table:
        last = rows.num_rows - 1  # the least and greatest key stay where they are
        return rows.take([0, *range(last - 1, 0, -1), last])

    return str(await _rewritten(at, PLAIN, mixed, rows_too=True))


async def key_twice(at: Cluster) -> str:
    def doubled(rows: pa.Table) -> pa.Table:
        return pa.concat_tables([rows.slice(0, 1), rows]).combine_chunks()

    return str(await _rewritten(at, PLAIN, doubled, rows_too=True))


async def sealed_bit_flipped(at: Cluster) -> str:
    return _flip(_root(at, REOPENED) / at.regions[REOPENED].manifest.sealed[0].name)


async def sealed_borrowed_segment_cut(at: Cluster) -> str:
    (sealed,) = at.regions[MOVED].manifest.sealed
    assert sealed.root is not None
    path = Path(sealed.root) / sealed.name
    path.write_bytes(path.read_bytes()[:-3])
    return str(path)


async def sealed_segment_gone(at: Cluster) -> str:
    path = _root(at, REOPENED) / at.regions[REOPENED].manifest.sealed[0].name
    path.unlink()
    return str(path)


async def statements_flipped(at: Cluster) -> str:
    """Whoever sends one of these statements again would have it applied twice."""
    return _flip(_statements(at, REOPENED), at=12)


async def statements_gone(at: Cluster) -> str:
    path = _statements(at, REOPENED)
    path.unlink()
    return str(path)


async def synced_bytes_lost(at: Cluster) -> str:
    """Damage before a record that knew those bytes to be durable."""
    at.write_to(REOPENED, [1_000], "late")
    (path,) = _root(at, REOPENED).glob("wal-1-2-*")
    return _flip(path, at=60)


async def last_record_damaged(at: Cluster) -> str:
    """By itself the log is as a crash might leave it; but its leader lives, and says more."""
    (path,) = _root(at, REOPENED).glob("wal-1-2-*")
    return _flip(path)


async def row_never_written(at: Cluster) -> str:
    """The leader answers for a version that its log does not hold."""
    (path,) = _root(at, PLAIN).glob("wal-*")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    return str(path)


async def segment_missing(at: Cluster) -> str:
    at.regions[REOPENED].maintenance.close_log()
    at.write_to(REOPENED, [1_000], "late")
    (_root(at, REOPENED) / "wal-1-2-1").unlink()
    return str(_root(at, REOPENED) / "wal")


async def borrow_that_the_route_lacks(at: Cluster) -> str:
    region = await at.route_of(WEATHER, 0)
    await at.change_region(region.model_copy(update={"borrows": ()}))
    return str(_manifest_path(at, MOVED))


async def borrow_that_nobody_reads(at: Cluster) -> str:
    region = await at.route_of(FLIGHTS, 1)
    await at.change_region(region.model_copy(update={"borrows": (at.root("dn-1") + "/old",)}))
    return str(_manifest_path(at, PLAIN))


async def row_of_another_region(at: Cluster) -> str:
    """Written past the router: a reader would look for it elsewhere."""
    stray = next(n for n in range(5_000, 5_100) if home_of(2, n) == 0)
    at.write_to(PLAIN, [stray], "stray")
    return f"rows of region {PLAIN}"


def _root(at: Cluster, region: str) -> Path:
    return Path(at.regions[region].place.root)


def _manifest_path(at: Cluster, region: str) -> Path:
    return _root(at, region) / manifest_name(at.regions[region].manifest.id)


def _statements(at: Cluster, region: str) -> Path:
    return _root(at, region) / at.regions[region].manifest.statement_files[0].name


def _entry(at: Cluster, region: str) -> FileEntry:
    return at.regions[region].manifest.files[0]


def _file(at: Cluster, region: str) -> Path:
    entry = _entry(at, region)
    return Path(entry.root or _root(at, region)) / entry.name


def _flip(path: Path, at: int = -5) -> str:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    return str(path)


async def _rewritten(
    at: Cluster, region: str, change: Callable[[pa.Table], pa.Table], *, rows_too: bool = False
) -> Path:
    """The file with other rows, and the manifest with its new length and checksums; with
    *rows_too*, with what it says of rows as well."""
    path = _file(at, region)
    rows = change(pq.read_table(path))
    path.unlink()
    columns = at.regions[region].spec.columns
    entry = write_rows(FileTarget(LocalDisk(), str(path.parent), path.name, columns), [rows])
    manifest_path = _manifest_path(at, region)
    manifest: Manifest = decode_manifest(manifest_path.read_bytes(), str(manifest_path))
    told = None if rows_too else {"bytes", "crc32", "footer_bytes", "footer_crc32"}
    update = entry.model_dump(include=told, exclude={"root", "name", "decoded"})
    files = (manifest.files[0].model_copy(update=update), *manifest.files[1:])
    manifest_path.write_bytes(encode_manifest(manifest.model_copy(update={"files": files})))
    return path


BREAKAGES = (
    Breakage("root-there", root_gone),
    Breakage("root-there", root_of_a_dropped_table_gone),
    Breakage("root-fence", higher_fence),
    Breakage("root-fence", no_fence),
    Breakage("root-manifest", damaged_manifest),
    Breakage("root-manifest", no_manifest),
    Breakage("root-manifest", old_manifest),
    Breakage("file-there", file_gone),
    Breakage("file-there", borrowed_file_gone),
    Breakage("file-intact", bit_flipped),
    Breakage("file-intact", row_removed),
    Breakage("file-there", statements_gone),
    Breakage("file-intact", statements_flipped),
    Breakage("file-rows", row_removed_and_covered_up),
    Breakage("file-rows", value_changed_and_covered_up),
    Breakage("file-order", rows_out_of_order),
    Breakage("file-order", key_twice),
    Breakage("segment-sealed", sealed_bit_flipped),
    Breakage("segment-sealed", sealed_borrowed_segment_cut),
    Breakage("segment-sealed", sealed_segment_gone),
    Breakage("segment-whole", synced_bytes_lost),
    Breakage("segment-whole", segment_missing),
    Breakage("rows-acknowledged", last_record_damaged),
    Breakage("rows-acknowledged", row_never_written),
    Breakage("root-borrows", borrow_that_the_route_lacks),
    Breakage("root-borrows", borrow_that_nobody_reads),
    Breakage("rows-placed", row_of_another_region),
)
