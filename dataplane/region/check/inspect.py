"""Looks at the regions on one disk without touching them: no fence, no file, no lock is made.

    python -m dataplane.region.check.inspect NODE_ROOT < request.json > inspection.json

A region may be served and written while it is looked at: what a manifest said is told only if that
manifest was still the current one when everything it names had been read.
"""

import posixpath
import sys
from collections.abc import Iterator, Sequence
from threading import Lock

import pyarrow as pa
from pydantic import ValidationError

from dataplane.region.check.inspect_files import (
    ReadSegment,
    inspect_file,
    inspect_growing,
    inspect_sealed,
    inspect_statements,
    reader_of,
)
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.disk.read_only import ReadOnlyDisk
from dataplane.region.format.checksum import RowsDigest, digest_rows
from dataplane.region.format.columns import KEY, OP
from dataplane.region.format.families import ROWS, columns_in
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.names import fence_name, fences, manifest_name, manifests
from dataplane.region.format.versions import wall_ms_of
from dataplane.region.log.sealed_log import SealedLog, unsealed_segments
from dataplane.region.manifests.manifest import Manifest, read_current_manifest
from dataplane.region.memory.memory import Memory
from dataplane.region.reads.lookup import LookupView, merge_sources
from dataplane.region.reads.merge import merge_live
from metasrv_base.errors import Corrupt, MetaError, NotFound
from metasrv_base.schema.keycodec import decode
from metasrv_base.schema.partition import Router, router
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.inspect import (
    FoundFence,
    FoundManifest,
    InspectedRoot,
    Inspection,
    InspectRequest,
    KeyShape,
    LiveEntries,
    LiveRows,
    WantedRegion,
)

REGIONS = "regions"
LOOKS_MAX = 4  # at a region that publishes manifests while it is read


def inspect(disk: Disk, node_root: str, request: InspectRequest) -> Inspection:
    """Raises nothing of ours: what cannot be read is part of what is said."""
    looked = ReadOnlyDisk(disk)
    return Inspection(
        node_root=node_root,
        exists=_listed(looked, node_root) is not None,
        folders=tuple(
            posixpath.join(node_root, REGIONS, name)
            for name in _listed(looked, posixpath.join(node_root, REGIONS)) or ()
        ),
        regions=tuple(inspect_root(looked, region, request.deep) for region in request.regions),
    )


def inspect_root(disk: Disk, region: WantedRegion, deep: bool) -> InspectedRoot:
    inspected = _look(disk, region, deep)
    for _ in range(LOOKS_MAX - 1):
        names = _listed(disk, region.root) or []
        current = manifest_name(manifests(names)[-1]) if manifests(names) else None
        if current == (inspected.manifest.name if inspected.manifest else None):
            break
        inspected = _look(disk, region, deep)
    return inspected


def _look(disk: Disk, region: WantedRegion, deep: bool) -> InspectedRoot:
    names = _listed(disk, region.root)
    inspected = InspectedRoot(
        region_id=region.region_id, root=region.root, exists=names is not None
    )
    if names is None:
        return inspected
    found_fences = tuple(
        FoundFence(name=fence_name(fence), epoch=fence.epoch, opening=fence.number)
        for fence in fences(names)
    )
    inspected = inspected.model_copy(update={"fences": found_fences})
    try:
        manifest = read_current_manifest(disk, region.root, int(region.region_id))
    except MetaError as error:
        return inspected.model_copy(update={"error": str(error)})
    if manifest is None:
        return inspected
    return inspected.model_copy(update=_content(disk, region, manifest, deep))


def _content(disk: Disk, region: WantedRegion, manifest: Manifest, deep: bool) -> dict[str, object]:
    files = tuple(inspect_file(disk, region.root, file, deep) for file in manifest.files)
    segments: list[ReadSegment] = []
    broken = None
    try:
        segments += _segments(disk, region.root, manifest)
    except MetaError as error:
        broken = str(error)
    whole = broken is None and all(f.found and f.error is None for f in files)
    live: LiveRows | None = None
    entries: tuple[LiveEntries, ...] = ()
    if deep and whole and all(segment.log for segment in segments):
        try:
            shown = _Shown(disk, region.root, manifest, _uncovered(segments, manifest))
            live = shown.rows(region.key)
            entries = tuple(shown.entries(index) for index in manifest.indexes)
        except MetaError as error:
            broken = str(error)
    return {
        "manifest": FoundManifest(
            name=manifest_name(manifest.id),
            region_id=str(manifest.spec.region_id),
            epoch=manifest.epoch,
            opening=manifest.opening,
            borrowed_roots=manifest.borrowed_roots,
        ),
        "error": broken,
        "files": files,
        "segments": tuple(segment.inspected for segment in segments),
        "statements": tuple(
            inspect_statements(disk, region.root, entry) for entry in manifest.statement_files
        ),
        "version": _version(manifest, segments),
        "live": live,
        "entries": entries,
    }


def _segments(disk: Disk, root: str, manifest: Manifest) -> Iterator[ReadSegment]:
    """The sealed ones in the manifest's order, then those of its own opening."""
    rest = unsealed_segments(disk.list(root), manifest)
    region_id = manifest.spec.region_id
    for entry in manifest.sealed:
        yield inspect_sealed(disk, root, entry)
    for name in rest:
        yield inspect_growing(disk, root, region_id, name, is_last=name == rest[-1])


def _version(manifest: Manifest, segments: Sequence[ReadSegment]) -> int:
    logged = (segment.version for segment in segments)
    return max((manifest.version, *(file.max_version for file in manifest.files), *logged))


def _uncovered(segments: Sequence[ReadSegment], manifest: Manifest) -> list[SealedLog]:
    """The logs whose rows do not stand in files too."""
    covered = {(entry.root, entry.name) for entry in manifest.sealed if entry.covered}
    logs = (segment.log for segment in segments if segment.log is not None)
    return [log for log in logs if (log.entry.root, log.entry.name) not in covered]


class _Shown:
    """The rows that readers would see. Raises Corrupt if row versions do not rise through the
    logs."""

    def __init__(
        self, disk: Disk, root: str, manifest: Manifest, logs: Sequence[SealedLog]
    ) -> None:
        self._columns = manifest.spec.columns
        self._memory = Memory(self._columns)
        for log in logs:
            for group in log.groups():
                self._memory.add(group.parts, wall_ms_of(group.version))
        self._readers = [reader_of(disk, root, entry) for entry in manifest.files]

    def rows(self, shape: KeyShape | None) -> LiveRows:
        digest, strays = RowsDigest(), _Strays(shape)
        for batch in self._live(ROWS):
            digest = digest + digest_rows(batch)
            strays.look(batch.column(KEY).to_pylist())
        return LiveRows(
            rows=digest.rows, checksum=digest.hex, strays=strays.count, first_stray=strays.first
        )

    def entries(self, index: int) -> LiveEntries:
        digest = sum(map(digest_rows, self._live(index)), RowsDigest())
        return LiveEntries(index=index, rows=digest.rows, checksum=digest.hex)

    def _live(self, family: int) -> Iterator[pa.RecordBatch]:
        memtable = self._memory.of(family)
        counted = () if memtable is None else ((memtable, memtable.rows),)
        readers = tuple(reader for reader in self._readers if reader.entry.family == family)
        view, columns = LookupView(counted, readers, Lock()), columns_in(family, self._columns)
        for table in merge_live(merge_sources(view, KeyRange(), columns)):
            yield from table.drop_columns([OP]).to_batches()


class _Strays:
    """Keys that do not belong in a region."""

    def __init__(self, shape: KeyShape | None) -> None:
        self._shape = shape
        self._types = [parse_type(text) for text in shape.types] if shape else []
        self._router = _router(shape) if shape else None
        self.count = 0
        self.first: str | None = None

    def look(self, keys: Sequence[bytes]) -> None:
        if self._router is None:
            return
        for key in keys:
            if not self._belongs(self._router, key):
                self.count += 1
                self.first = self.first or key.hex()

    def _belongs(self, rule: Router, key: bytes) -> bool:
        assert self._shape is not None
        try:
            values = decode(self._types, key)
        except Corrupt:
            return False
        return (
            rule.number([values[position] for position in self._shape.partition_at])
            == self._shape.number
        )


def _router(shape: KeyShape) -> Router:
    return router(
        shape.rule, [parse_type(shape.types[position]) for position in shape.partition_at]
    )


def _listed(disk: Disk, folder: str) -> list[str] | None:
    try:
        return disk.list(folder)
    except NotFound:
        return None


def main(args: Sequence[str]) -> int:
    if len(args) != 1 or not posixpath.isabs(args[0]):
        sys.stderr.write(
            "usage: python -m dataplane.region.check.inspect NODE_ROOT < request.json\n"
        )
        return 2
    try:
        request = InspectRequest.model_validate_json(sys.stdin.read())
    except ValidationError as error:
        sys.stderr.write(f"the request is not one: {error.error_count()} errors\n")
        return 2
    try:
        inspected = inspect(LocalDisk(), posixpath.normpath(args[0]), request)
    except MetaError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(inspected.model_dump_json())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
