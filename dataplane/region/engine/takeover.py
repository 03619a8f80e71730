"""Finds the files that an opening builds on: raises every fence, then reads the newest manifest
(P5).

Fences go up in the own root first, then in the borrowed roots from the oldest to the newest. A
leader of an earlier epoch did the same, so behind our fences it is either found in a root that we
can list, or it will be refused at an older one and never serve.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from dataplane.region.disk.disk import Disk
from dataplane.region.disk.lost import lost_if_missing
from dataplane.region.format.names import Opening, fences, manifests, segments
from dataplane.region.manifests.fence import (
    FenceContent,
    raise_borrowed_fence,
    raise_own_fence,
    read_fence,
)
from dataplane.region.manifests.manifest import Manifest, read_current_manifest
from dataplane.region.place import OpenOrder, RegionPlace
from metasrv_base.errors import NotFound, Unavailable


@dataclass(frozen=True, slots=True)
class RegionClaim:
    """Fences that are up. `roots`: those that exist, the own one first."""

    mine: FenceContent
    roots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ManifestSource:
    """The current manifest, and the root that holds it."""

    root: str
    manifest: Manifest


def claim_new_root(region_place: RegionPlace, order: OpenOrder) -> RegionClaim:
    """Raises the own fence for an opening, and then the same in the roots that are left; makes the
    folder if it is not there."""
    region_place.disk.make_folder(region_place.root)
    mine = _raise_own(region_place, order)
    left = _raise_in(region_place.disk, order.borrows, mine)
    return RegionClaim(mine, (region_place.root, *left))


def claim_roots(region_place: RegionPlace, order: OpenOrder) -> RegionClaim:
    """Raises the fence everywhere. Raises Unavailable `region-lost` for a root that is gone,
    Conflict `stale-epoch` behind a higher fence."""
    borrowed = [root for root in order.inherits if root != region_place.root]
    if borrowed:
        region_place.disk.make_folder(region_place.root)
    with lost_if_missing(region_place.root):
        mine = _raise_own(region_place, replace(order, borrows=tuple(borrowed)))
    return RegionClaim(mine, (region_place.root, *_raise_in(region_place.disk, borrowed, mine)))


def find_source(disk: Disk, claim: RegionClaim, order: OpenOrder) -> ManifestSource:
    """The newest manifest of all roots. Raises Unavailable `region-lost` if there is none, or if a
    leader newer than it may have served from storage that is gone."""
    newest: ManifestSource | None = None
    for root in claim.roots:
        with lost_if_missing(root):
            if newest and not _has_newer(disk, root, newest.manifest):
                continue
            manifest = read_current_manifest(disk, root, order.region_id)
        if manifest is not None:
            newest = ManifestSource(root, manifest)
    if newest is None:
        missing = [root for root in order.inherits if root not in claim.roots]
        raise Unavailable("region-lost", root=(missing or claim.roots)[-1])
    _refuse_lost_leaders(disk, claim, newest, order.unannounced)
    return newest


def _raise_own(region_place: RegionPlace, order: OpenOrder) -> FenceContent:
    """Creates a fence in the own root, above the openings that borrowed roots know: had the own
    root been wiped, these numbers would otherwise be given twice."""
    numbers = [
        fence.number
        for root in order.borrows
        if _exists(region_place.disk, root)
        for fence in fences(region_place.disk.list(root))
        if fence.epoch == order.epoch
    ]
    claim = FenceContent(
        region_id=order.region_id,
        epoch=order.epoch,
        opening=max(numbers, default=0),
        root=region_place.root,
        created_ms=region_place.clock.wall_ms(),
    )
    return raise_own_fence(region_place.disk, region_place.root, claim)


def _raise_in(disk: Disk, roots: Sequence[str], mine: FenceContent) -> list[str]:
    """The same fence in those of *roots* that exist, which are returned. Each is looked for in its
    turn: a leader that came before our fence in an older one has made its own root by then."""
    existing = []
    for root in roots:
        if _exists(disk, root):
            with lost_if_missing(root):
                raise_borrowed_fence(disk, root, mine)
            existing.append(root)
    return existing


def _refuse_lost_leaders(
    disk: Disk, claim: RegionClaim, source: ManifestSource, unannounced: Container[str]
) -> None:
    """A fence newer than the manifest was raised by a leader whose own root must then show the
    same fence: with it and without a manifest it never served; without it, its storage is gone.
    An opener that was never announced has lost nothing, whatever became of its root."""
    for root, fence in _newer_fences(disk, claim, source.manifest.epoch):
        raised = read_fence(disk, root, fence)
        if raised is None or raised.root in unannounced:
            continue
        if raised.root not in claim.roots or read_fence(disk, raised.root, fence) != raised:
            raise Unavailable("region-lost", root=raised.root, epoch=raised.epoch)


def _newer_fences(disk: Disk, claim: RegionClaim, epoch: int) -> Iterator[tuple[str, Opening]]:
    for root in claim.roots:
        for fence in fences(disk.list(root)):
            if fence.epoch > epoch and fence < claim.mine.of:
                yield root, fence


def _has_newer(disk: Disk, root: str, manifest: Manifest) -> bool:
    names = disk.list(root)
    manifest_ids = manifests(names)
    # A log without a manifest is looked at too: it is how a lost manifest shows.
    return manifest_ids[-1] > manifest.id if manifest_ids else bool(segments(names))


def _exists(disk: Disk, root: str) -> bool:
    try:
        disk.list(root)
    except NotFound:
        return False
    return True
