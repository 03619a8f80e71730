"""Rules about the files of regions: they exist, are intact, and match their manifest."""

from collections.abc import Iterator

from keys.model.tables import RegionState
from metasrv.check.check_input import CheckInput
from metasrv.check.rule import CheckFault, CheckRule, RuleFunction, Scope
from metasrv_base.wire.node.inspect import FileContent, InspectedFile, InspectedSegment


def roots(facts: CheckInput) -> Iterator[CheckFault]:
    for region, root in facts.looked_at():
        if not root.exists:
            state = f"missing, the root of region {region.region_id}"
            yield CheckFault(root.root, state, "the folder with its rows")


def _served(facts: CheckInput) -> frozenset[str]:
    """Ids of regions whose leader has opened them at the epoch of the route. Nobody opens those of
    a dropped table: one that was restored may have been dropped as soon as its node was adopted."""
    kept = {region.region_id for _, region in facts.kept()}
    settled = (region for _, region in facts.settled() if region.state is RegionState.OPEN)
    return frozenset(region.region_id for region in settled) - kept


def fences(facts: CheckInput) -> Iterator[CheckFault]:
    """No fence is raised to an epoch that the route has not shown (P5)."""
    served = _served(facts)
    for region, root in facts.looked_at():
        if not root.exists:
            continue
        if not root.fences:
            yield CheckFault(f"{root.root}/fence", "missing", f"a fence of epoch {region.epoch}")
            continue
        highest = root.fences[-1]
        is_behind = highest.epoch < region.epoch
        if highest.epoch > region.epoch or (is_behind and region.region_id in served):
            state = f"the highest fence, and the route is at epoch {region.epoch}"
            yield CheckFault(
                f"{root.root}/{highest.name}", state, f"a fence of epoch {region.epoch}"
            )


def manifests(facts: CheckInput) -> Iterator[CheckFault]:
    served = _served(facts)
    for region, root in facts.looked_at():
        if not root.exists:
            continue
        if root.manifest is None:
            state = root.error or "there is none"
            yield CheckFault(f"{root.root}/manifest", state, f"one of region {region.region_id}")
        elif region.region_id in served and root.manifest.epoch != region.epoch:
            state = f"the current one, and the route is at epoch {region.epoch}"
            path = f"{root.root}/{root.manifest.name}"
            yield CheckFault(path, state, f"one of epoch {region.epoch}")


def _files(facts: CheckInput) -> Iterator[InspectedFile]:
    """Files of rows, of entries and of statements; of the last only bytes are listed."""
    return (file for _, root in facts.looked_at() for file in (*root.files, *root.statements))


def present(facts: CheckInput) -> Iterator[CheckFault]:
    for file in _files(facts):
        if file.found is None:
            state = file.error or "missing, and the manifest lists it"
            yield CheckFault(file.path, state, _size(file.listed))


def _size(content: FileContent) -> str:
    rows = "" if content.rows is None else f", {content.rows} rows"
    return f"{content.bytes} bytes{rows}"


def _digest_text(content: FileContent) -> str:
    return f"{_size(content)}, crc32 {content.crc32}"


def intact(facts: CheckInput) -> Iterator[CheckFault]:
    for file in _files(facts):
        if file.found is None:
            continue
        actual, listed = file.found, file.listed
        if (actual.bytes, actual.crc32) != (listed.bytes, listed.crc32):
            yield CheckFault(file.path, _digest_text(actual), _digest_text(listed))
        elif file.error is not None:
            yield CheckFault(file.path, file.error, "a file that can be decoded")


# Fields of a file's content in its manifest; None for the actual file: it was not read.
_CONTENT = ("rows", "row_checksum", "min_key", "max_key", "min_version", "max_version")


def content(facts: CheckInput) -> Iterator[CheckFault]:
    for file in _files(facts):
        if file.found is None:
            continue
        for name in _CONTENT:
            actual, listed = getattr(file.found, name), getattr(file.listed, name)
            if actual is not None and actual != listed:
                yield CheckFault(file.path, f"{name} {actual}", f"{name} {listed}, by the manifest")


def order(facts: CheckInput) -> Iterator[CheckFault]:
    """Reads search files by key: a key out of order is not found, a duplicate shows as two rows."""
    for file in _files(facts):
        if file.unsorted_at is not None:
            state = f"row {file.unsorted_at} does not follow the one before it"
            yield CheckFault(file.path, state, "rising keys, and the newest row of a key first")


def _segments(facts: CheckInput) -> Iterator[InspectedSegment]:
    return (segment for _, root in facts.looked_at() for segment in root.segments)


def sealed(facts: CheckInput) -> Iterator[CheckFault]:
    """The bytes before a seal were acknowledged; no replay reads beyond it."""
    for segment in _segments(facts):
        right = segment.sealed
        if right is None or segment.found == right:
            continue
        actual = segment.error or (f"{segment.found}" if segment.found else "missing")
        yield CheckFault(segment.path, actual, f"{right}, as it was sealed")


def growing(facts: CheckInput) -> Iterator[CheckFault]:
    """Damage to synced bytes is no torn tail: rows that were acknowledged are lost."""
    for segment in _segments(facts):
        if segment.sealed is None and segment.error is not None:
            yield CheckFault(segment.path, segment.error, "whole records up to its end")
    for _, root in facts.looked_at():
        if root.manifest is not None and root.error is not None:
            right = "every segment in order, with rising versions"
            yield CheckFault(f"{root.root}/wal", root.error, right)


def borrows(facts: CheckInput) -> Iterator[CheckFault]:
    """A root that no route claims may be deleted while it is read."""
    for region, root in facts.looked_at():
        if region.state is not RegionState.OPEN or root.manifest is None:
            continue
        actual = sorted({*root.manifest.borrowed_roots} - {*region.unannounced})
        right = sorted({*region.borrows} - {*region.unannounced})
        if actual != right:
            path = f"{root.root}/{root.manifest.name}"
            yield CheckFault(path, f"it reads from {actual}", f"{right}, as the route says")


def placed(facts: CheckInput) -> Iterator[CheckFault]:
    """A read looks for a row in one region only; so a key is also unique in its table."""
    for region, root in facts.looked_at():
        if root.live is not None and root.live.strays:
            state = f"{root.live.strays} keys of other regions, such as {root.live.first_stray}"
            subject = f"rows of region {region.region_id}"
            yield CheckFault(subject, state, "rows that the partition rule sends here")


def _world(id: str, promise: int, title: str, run: RuleFunction) -> CheckRule:
    return CheckRule(id, promise, title, run, scope=Scope.WORLD)


RULES = (
    _world("root-there", 6, "the root of each region exists", roots),
    _world("root-fence", 6, "the highest fence in a root has the epoch of the route", fences),
    _world("root-manifest", 6, "each region has an intact manifest of its epoch", manifests),
    _world("file-there", 6, "each file that a manifest lists exists", present),
    _world(
        "file-intact", 6, "each file has the length and checksum that its manifest lists", intact
    ),
    _world("file-order", 6, "the rows of a file are in order, without duplicates", order),
    _world("file-rows", 6, "each file holds the rows that its manifest lists", content),
    _world("segment-sealed", 6, "each sealed segment is as it was sealed", sealed),
    _world("segment-whole", 6, "the log of each region is intact and in order", growing),
    _world(
        "root-borrows",
        6,
        "each region borrows the roots that its route lists, and no others",
        borrows,
    ),
    CheckRule(
        "rows-placed",
        6,
        "each row is in the region that the partition rule gives",
        placed,
        scope=Scope.WORLD,
        deep=True,
    ),
)
