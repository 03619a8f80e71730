"""A leader whose log has ingests of entries and of rows among its rows, and how copies get files.

An item is what stands at one position: rows, a change, or files that are taken.
"""

import posixpath
from dataclasses import dataclass

import pyarrow as pa

from dataplane.region.engine.region import Region
from dataplane.region.engine.region_changes import RegionChange
from dataplane.region.fetching.logged_fetch import LoggedFetch
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.format.columns import PUT, file_schema
from dataplane.region.format.families import ENTRY_COLUMNS, ROWS
from dataplane.region.format.schema import RegionSchema
from dataplane.region.manifests.adoption import Ingest, data_file
from dataplane.region.manifests.marks import version_of_mark
from metasrv_base.errors import MetaError
from tests.dataplane.region.attempts import ATTEMPT, MARK
from tests.dataplane.region.entries import (
    DEAD,
    INDEX,
    OTHER,
    SCHEMA,
    Entries,
    Place,
    Value,
    write_mixed,
)
from tests.dataplane.region.entries import entries_of as scanned
from tests.dataplane.region.rig import SPEC, Contents, contents

PIECE = 700
LOAD = "load"
LOADED = "attempts/load"
BARE = RegionSchema(3, 2, SPEC.columns, frozenset(), frozenset({INDEX, OTHER, DEAD}))
BROUGHT: Contents = {b"c": (30, "brought"), b"e": (50, "brought"), b"f": (60, "brought")}
ITEMS = 11
TAKES_ENTRIES, TAKES_ROWS = 5, 9


def ingest(region: Region, source: Ingest) -> None:
    """Both halves, as a leader does whose copies have the record and its files."""
    for batch in region.file_ingest.entries_first(source):
        (answer,) = region.writer.apply([batch])
        if isinstance(answer, MetaError):
            raise answer
    ordered = region.changes.order(source)
    if ordered.record is not None:
        region.changes.settle(ordered.record)


def change(region: Region, wanted: RegionChange) -> None:
    ordered = region.changes.order(wanted)
    assert ordered.record is not None
    region.changes.settle(ordered.record)


def entries_made(region: Region) -> Ingest:
    """The job's output: an entry for each row, by its text. Sources are read as of the mark."""
    marked = version_of_mark(region.manifest, MARK)
    assert marked is not None
    rows = [
        (f"{text}-".encode() + key, key, version)
        for part in region.reader.scan()
        for key, text, version in zip(
            part.column("_key").to_pylist(),
            part.column("c2").to_pylist(),
            part.column("_version").to_pylist(),
            strict=True,
        )
        if version <= marked
    ]
    keys, pointed, versions = zip(*sorted(rows), strict=True)
    schema = file_schema(ENTRY_COLUMNS)
    columns = [keys, versions, [PUT] * len(keys), pointed]
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
    return Ingest("p-1", ATTEMPT, INDEX, MARK, _written(region, ATTEMPT, table, INDEX))


def rows_made(region: Region) -> Ingest:
    """The job's output: rows of the version that a mark has reserved."""
    version, keys = version_of_mark(region.manifest, LOAD), sorted(BROUGHT)
    schema = file_schema(SPEC.columns)
    columns = [
        *(keys, [version] * len(keys), [PUT] * len(keys)),
        *([BROUGHT[key][place] for key in keys] for place in (0, 1)),
    ]
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
    return Ingest("p-2", LOADED, ROWS, LOAD, _written(region, LOADED, table, ROWS))


def _written(region: Region, attempt: str, table: pa.Table, family: int) -> list:  # type: ignore[type-arg]
    disk, root = region.place.disk, region.place.root
    disk.make_folder(f"{root}/{attempt}")
    halves = [table.slice(0, 1), table.slice(1)]
    files = []
    for number, rows in enumerate(halves):
        name = f"{attempt}/{region.opening.epoch}-{number}.parquet"
        if name.removeprefix(f"{attempt}/") in disk.list(f"{root}/{attempt}"):
            disk.remove(f"{root}/{name}")
        columns = SPEC.columns if family == ROWS else ENTRY_COLUMNS
        target = FileTarget(disk, root, name, columns, family)
        files.append(data_file(write_rows(target, [rows])))
    return files


ROWS_OF: dict[int, dict[Place, Value]] = {
    1: {(ROWS, b"a"): (1, "x"), (ROWS, b"b"): (2, "y")},
    2: {(ROWS, b"c"): (3, "z")},
    4: {(ROWS, b"d"): (4, "w"), (INDEX, b"w-d"): b"d"},
    6: {(ROWS, b"a"): None, (INDEX, b"x-a"): None},
    10: {(ROWS, b"e"): (5, "own")},
}
CHANGES = {
    3: RegionChange(SCHEMA, MARK),
    7: RegionChange(SCHEMA, closes=(MARK,)),
    8: RegionChange(BARE, LOAD, reserves=True),
    11: RegionChange(BARE, closes=(LOAD,)),
}


def work(region: Region, item: int) -> None:
    """Puts item 1 to ITEMS at the position of that number."""
    if item in ROWS_OF:
        write_mixed(region, f"s-{region.opening.epoch}-{item}", ROWS_OF[item])
    elif item in CHANGES:
        change(region, CHANGES[item])
    else:
        made = entries_made if item == TAKES_ENTRIES else rows_made
        ingest(region, made(region))


@dataclass(frozen=True)
class Moment:
    """All that an ingest may touch."""

    rows: Contents
    entries: Entries
    adopted: tuple[str, ...]
    marks: tuple[tuple[str, int], ...]
    version: int


def moment(region: Region) -> Moment:
    manifest = region.manifest
    return Moment(
        contents(region),
        scanned(region) if INDEX in manifest.indexes else {},
        manifest.adopted,
        tuple((mark.name, mark.version) for mark in manifest.marks),
        region.stats().version,
    )


def fetch_lacked(region: Region, copy: CopyRegion) -> LoggedFetch:
    """The files that the copy lacks arrive, piece by piece, from the leader's disk as it is."""
    fetch = copy.fetch_lacked()
    names = fetch.names_in(region.place.root)
    for number in fetch.missing:
        arrival, size = fetch.receive(number), fetch.file(number).bytes
        path = posixpath.join(region.place.root, names[number - 1])
        for offset in range(0, size, PIECE):
            arrival.append(region.place.disk.read(path, offset, min(PIECE, size - offset)))
        arrival.finish()
    return fetch
