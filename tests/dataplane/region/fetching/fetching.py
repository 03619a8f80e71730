"""Files of a leader fetched by hand, in pieces, without a node."""

import posixpath
from collections.abc import Callable, Iterator

from dataplane.region.engine.region import Region
from dataplane.region.fetching.file_fetch import FileFetch
from dataplane.region.fetching.session_files import files_of
from dataplane.region.following.copy_region import CopyRegion
from tests.dataplane.region.following.stream import sent
from tests.dataplane.region.rig import write

PIECE = 700


def pieces(region: Region, fetch: FileFetch, number: int) -> Iterator[bytes]:
    """The pieces of a file as the leader's disk has them now."""
    file = files_of(fetch.manifest)[number - 1]
    path = posixpath.join(file.root or fetch.source, file.name)
    for offset in range(0, file.bytes, PIECE):
        size = min(PIECE, file.bytes - offset)
        yield region.place.disk.read(path, offset, size)


def begun(region: Region, copy: CopyRegion) -> FileFetch:
    """The copy has asked for records, and begins to fetch the files that it needs instead."""
    if copy.needs_files is None:
        copy.take(sent(region, copy.durable.sequence, common=0))
    assert copy.needs_files == region.opening.epoch
    return copy.fetch(region.place.root, region.pin_files("session"))


def receive(
    region: Region,
    fetch: FileFetch,
    number: int,
    changed: Callable[[bytes], bytes] = lambda data: data,
) -> None:
    arrival = fetch.receive(number)
    for data in pieces(region, fetch, number):
        arrival.append(changed(data))
    arrival.finish()


def fetched(region: Region, copy: CopyRegion) -> FileFetch:
    """All files of the leader have arrived, and are installed. Returns the fetch."""
    fetch = begun(region, copy)
    for number in fetch.missing:
        receive(region, fetch, number)
    copy.install(fetch)
    fetch.close()
    region.unpin_files("session")
    return fetch


def written(region: Region, first: int, end: int) -> None:
    """Rows with those numbers, each a record of its own."""
    for number in range(first, end):
        write(region, f"s-{number}", {f"k{number:03}".encode(): (number, "x" * 40)})


def flushed(region: Region, first: int, end: int) -> None:
    written(region, first, end)
    region.maintenance.flush()
