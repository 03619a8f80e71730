"""Rules about the files of regions: they are there, whole, and hold what their manifest says."""

from collections.abc import Iterator

from keys.model.tables import RegionState
from metasrv.check.check_input import CheckInput
from metasrv.check.rule import CheckFault, CheckRule, Judgement, Scope
from metasrv_base.wire.node.inspect import FileContent, InspectedFile, InspectedSegment


def roots(facts: CheckInput) -> Iterator[CheckFault]:
    for region, seen in facts.looked_at():
        if not seen.exists:
            found = f"missing, the root of region {region.region_id}"
            yield CheckFault(seen.root, found, "the folder with its rows")


def fences(facts: CheckInput) -> Iterator[CheckFault]:
    """No fence is raised to an epoch that the route has not shown (P5)."""
    for region, seen in facts.looked_at():
        if not seen.exists:
            continue
        if not seen.fences:
            yield CheckFault(f"{seen.root}/fence", "missing", f"a fence of epoch {region.epoch}")
            continue
        highest = seen.fences[-1]
        serves = region.state is RegionState.OPEN
        if highest.epoch > region.epoch or (serves and highest.epoch < region.epoch):
            found = f"the highest fence, and the route is at epoch {region.epoch}"
            yield CheckFault(
                f"{seen.root}/{highest.name}", found, f"a fence of epoch {region.epoch}"
            )


def manifests(facts: CheckInput) -> Iterator[CheckFault]:
    for region, seen in facts.looked_at():
        if not seen.exists:
            continue
        if seen.manifest is None:
            found = seen.error or "there is none"
            yield CheckFault(f"{seen.root}/manifest", found, f"one of region {region.region_id}")
        elif region.state is RegionState.OPEN and seen.manifest.epoch != region.epoch:
            found = f"the current one, and the route is at epoch {region.epoch}"
            path = f"{seen.root}/{seen.manifest.name}"
            yield CheckFault(path, found, f"one of epoch {region.epoch}")


def _files(facts: CheckInput) -> Iterator[InspectedFile]:
    """Of rows, of entries and of statements: of the last only bytes are listed."""
    return (file for _, seen in facts.looked_at() for file in (*seen.files, *seen.statements))


def present(facts: CheckInput) -> Iterator[CheckFault]:
    for file in _files(facts):
        if file.found is None:
            found = file.error or "missing, and the manifest lists it"
            yield CheckFault(file.path, found, _size(file.listed))


def _size(content: FileContent) -> str:
    rows = "" if content.rows is None else f", {content.rows} rows"
    return f"{content.bytes} bytes{rows}"


def _said(content: FileContent) -> str:
    return f"{_size(content)}, crc32 {content.crc32}"


def intact(facts: CheckInput) -> Iterator[CheckFault]:
    for file in _files(facts):
        if file.found is None:
            continue
        found, listed = file.found, file.listed
        if (found.bytes, found.crc32) != (listed.bytes, listed.crc32):
            yield CheckFault(file.path, _said(found), _said(listed))
        elif file.error is not None:
            yield CheckFault(file.path, file.error, "a file that can be decoded")


# What a manifest says of a file's content; None in what was found: it was not read.
_CONTENT = ("rows", "row_checksum", "min_key", "max_key", "min_version", "max_version")


def content(facts: CheckInput) -> Iterator[CheckFault]:
    for file in _files(facts):
        if file.found is None:
            continue
        for name in _CONTENT:
            found, listed = getattr(file.found, name), getattr(file.listed, name)
            if found is not None and found != listed:
                yield CheckFault(file.path, f"{name} {found}", f"{name} {listed}, by the manifest")


def order(facts: CheckInput) -> Iterator[CheckFault]:
    """Reads search files by key: a key out of order is not found, one that is twice is two rows."""
    for file in _files(facts):
        if file.unsorted_at is not None:
            found = f"row {file.unsorted_at} does not follow the one before it"
            yield CheckFault(file.path, found, "keys that rise, and of one key the newest first")


def _segments(facts: CheckInput) -> Iterator[InspectedSegment]:
    return (segment for _, seen in facts.looked_at() for segment in seen.segments)


def sealed(facts: CheckInput) -> Iterator[CheckFault]:
    """What stands before a seal was acknowledged; nobody reads beyond it."""
    for segment in _segments(facts):
        right = segment.sealed
        if right is None or segment.found == right:
            continue
        found = segment.error or (f"{segment.found}" if segment.found else "missing")
        yield CheckFault(segment.path, found, f"{right}, as it was sealed")


def growing(facts: CheckInput) -> Iterator[CheckFault]:
    """Damage to what was synced is not a torn tail: rows that were acknowledged are gone."""
    for segment in _segments(facts):
        if segment.sealed is None and segment.error is not None:
            yield CheckFault(segment.path, segment.error, "whole records up to its end")
    for _, seen in facts.looked_at():
        if seen.manifest is not None and seen.error is not None:
            right = "every segment in turn, and versions that rise"
            yield CheckFault(f"{seen.root}/wal", seen.error, right)


def borrows(facts: CheckInput) -> Iterator[CheckFault]:
    """A root that the route does not claim may be deleted under its reader."""
    for region, seen in facts.looked_at():
        if region.state is not RegionState.OPEN or seen.manifest is None:
            continue
        found = sorted({*seen.manifest.borrowed_roots} - {*region.unannounced})
        right = sorted({*region.borrows} - {*region.unannounced})
        if found != right:
            path = f"{seen.root}/{seen.manifest.name}"
            yield CheckFault(path, f"it reads from {found}", f"{right}, as the route says")


def placed(facts: CheckInput) -> Iterator[CheckFault]:
    """Reads look for a row in one region alone; so a key is unique in its table, too."""
    for region, seen in facts.looked_at():
        if seen.live is not None and seen.live.strays:
            found = f"{seen.live.strays} keys of other regions, as {seen.live.first_stray}"
            subject = f"rows of region {region.region_id}"
            yield CheckFault(subject, found, "rows that the partition rule sends here")


def _world(id: str, promise: int, title: str, run: Judgement) -> CheckRule:
    return CheckRule(id, promise, title, run, scope=Scope.WORLD)


RULES = (
    _world("root-there", 6, "the root of each region is there", roots),
    _world("root-fence", 6, "the highest fence is the route's epoch", fences),
    _world("root-manifest", 6, "each region has a whole manifest of its epoch", manifests),
    _world("file-there", 6, "each file that a manifest lists is there", present),
    _world("file-intact", 6, "each file has the length and checksum of its manifest", intact),
    _world("file-order", 6, "the rows of a file are in order, and none is there twice", order),
    _world("file-rows", 6, "each file holds the rows that its manifest says", content),
    _world("segment-sealed", 6, "each sealed segment holds what was sealed", sealed),
    _world("segment-whole", 6, "the log of each region is whole and in order", growing),
    _world("root-borrows", 6, "a region reads from the roots that its route borrows", borrows),
    CheckRule(
        "rows-placed",
        6,
        "each row is in the region that the partition rule says",
        placed,
        scope=Scope.WORLD,
        deep=True,
    ),
)
