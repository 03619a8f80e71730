"""Judges folders of regions on nodes against a catalog: claimed, orphaned, or not to be judged yet.

The functions are pure. An orphan is proved, not guessed (docs/decisions/0400): its table is unknown
to a catalog that is at least as new as the folder, or the route of its region, at an epoch that is
at least as high as the folder's, names other roots. Where that cannot be shown the judgement says
why it waits.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby

from keys.model.tables import RegionRoute, RegionState, TableRoute
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.model import INT64_END
from metasrv_base.wire.node.adoption import FoundRoot, Inventory

_NAME = re.compile(r"(?:.*/)?([0-9]{1,20})-([0-9]{1,20})(?:-([0-9]{1,20}))?")
"""Region, epoch, and of a copy that was added later the version of the copies: as
procedures/steps/placing.py and copies/copy_routes.py beside it make them."""


class OrphanReason(StrEnum):
    """Reasons for which a folder is an orphan."""

    NO_TABLE = "no-table"
    """The catalog has no such table, living or dropped: it was purged, or never made."""
    NO_REGION = "no-region"
    """The table has no such region."""
    OLD_EPOCH = "old-epoch"
    """The route is at a higher epoch, and names other roots."""
    OTHER_ROOT = "other-root"
    """The route is at this epoch, and names other roots: a copy that was removed."""


class WaitReason(StrEnum):
    """Reasons for which a folder that no route names cannot be judged."""

    BUSY = "busy"
    """A procedure holds a lock of the table: it may be making the folder, or deleting it."""
    BORROWED = "borrowed"
    """A claimed root reads files in it."""
    CATALOG_OLDER = "catalog-older"
    """The folder may be newer than the catalog."""
    LOST = "lost"
    """The region is lost: its former folders may hold the last rows there are."""
    UNVERIFIED = "unverified"
    """The region was restored, and an adoption still looks for its folder."""
    RESTORED = "restored"
    """The cluster was restored: the table may have been made after the backup."""
    UNREADABLE = "unreadable"
    """Its fence or its manifest cannot be read, so its epoch, age or borrows are not known."""
    YOUNG = "young"
    """Its highest fence was raised within the grace time."""
    READERS = "readers"
    """A node that has the region did not say which folders it reads, or cannot read which."""
    NAME = "name"
    """No region's folder has such a name: an operator put it there."""


NAMED_BY_OTHERS = frozenset({WaitReason.BUSY, WaitReason.BORROWED})
"""Reasons by which somebody still needs the folder, though no route names it."""


@dataclass(frozen=True, slots=True)
class RegionFolder:
    """A folder as its name, and perhaps its files, describe it."""

    root: str
    """Absolute."""
    region_id: int | None
    """The region in its name; None for a name that no region's folder has."""
    epoch: int = 0
    """The highest epoch of its name, its fences and its manifest."""
    copies_version: int = 0
    """The version of the copies in its name; 0: it has none."""
    fenced_ms: int | None = None
    """Time of its highest fence, by the clock of its node; None: not known."""
    is_readable: bool = True

    @classmethod
    def named(cls, root: str) -> "RegionFolder":
        """Describes a folder of which the name alone is known."""
        match = _NAME.fullmatch(root)
        if match is None:
            return cls(root, None)
        region_id, epoch, version = (int(number or 0) for number in match.groups())
        if max(region_id, epoch, version) >= INT64_END:
            return cls(root, None)
        return cls(root, region_id, epoch, version)

    @classmethod
    def of(cls, item: FoundRoot) -> "RegionFolder":
        """Describes a folder of an inventory."""
        named = cls.named(item.root)
        is_whole = item.error is None and item.opener is not None
        return cls(
            item.root,
            named.region_id if named.region_id == int(item.region_id) else None,
            max(named.epoch, item.fence_epoch, item.manifest_epoch or 0),
            named.copies_version,
            item.fenced_ms,
            is_whole and item.fenced_ms is not None,
        )

    @classmethod
    def of_quarantined(cls, item: FoundRoot) -> "RegionFolder":
        """Describes a folder in quarantine. One without a fence had one when it came: its deletion
        was interrupted, and its name says what it was."""
        described = cls.of(item)
        was_cut = item.fence_epoch == 0 and item.error is None
        return replace(described, is_readable=True) if was_cut else described

    @property
    def table_id(self) -> int | None:
        return None if self.region_id is None else table_of(RegionId(self.region_id))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts that folders are judged by."""

    version: int
    """The version of the catalog."""
    route: Callable[[int], TableRoute | None]
    """The route of a table in it, living or dropped: a dropped table keeps its claim."""
    is_busy: Callable[[int], bool]
    """Whether a procedure held a lock of the table after the folders were listed, and before
    `seen_at` was read."""
    seen_at: int
    """The version that was stored after the locks had been looked at. Any procedure that made one
    of them is busy, or ended at that version or before."""
    borrowed: frozenset[str] = frozenset()
    """Roots that manifests of claimed roots name, or routes of other tables."""
    unread: frozenset[str] = frozenset()
    """Roots whose manifests cannot be read: nobody knows which roots they name."""
    is_restored: bool = False
    """Whether the cluster was restored from a backup, which folders may be newer than."""
    now_ms: int = 0
    grace_ms: int = 0
    """The age below which a folder is left alone; 0: ages are not looked at."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Neither a reason nor a wait: a route names the folder."""

    folder: RegionFolder
    orphan: OrphanReason | None = None
    """The proof; None: it is not proved to be an orphan."""
    wait: WaitReason | None = None

    @property
    def is_claimed(self) -> bool:
        """Whether a route names it."""
        return self.orphan is None and self.wait is None

    @property
    def is_needed(self) -> bool:
        """Whether a route, a procedure or another folder needs it, as far as is known."""
        return self.orphan is None and (self.wait is None or self.wait in NAMED_BY_OTHERS)


def unread_roots(page: Inventory) -> frozenset[str]:
    """Roots of a page of which their node does not know what they read."""
    return frozenset(root.root for root in page.every_root if root.error is not None)


def judgements(folders: Iterable[RegionFolder], evidence: Evidence) -> Iterator[Judgement]:
    """Judges folders in their order. Those of one table that follow each other cost one look at its
    route."""
    for table_id, some in groupby(folders, key=lambda folder: folder.table_id):
        route = None if table_id is None else evidence.route(table_id)
        regions = {} if route is None else {r.region_id: r for r in route.region_routes}
        named = {root for region in regions.values() for root in (*region.roots, *region.borrows)}
        is_busy = table_id is not None and evidence.is_busy(table_id)
        for folder in some:
            if folder.root in named:
                yield Judgement(folder)
            elif folder.root in evidence.borrowed:
                yield Judgement(folder, wait=WaitReason.BORROWED)
            elif folder.region_id is None:
                yield Judgement(folder, wait=WaitReason.NAME)
            elif is_busy:
                yield Judgement(folder, wait=WaitReason.BUSY)
            elif (wait := _not_known(folder, evidence)) is not None:
                yield Judgement(folder, wait=wait)
            elif route is None:
                yield _without_table(folder, evidence)
            else:
                yield _unnamed(folder, regions.get(str(folder.region_id)), evidence.unread)


def _not_known(folder: RegionFolder, evidence: Evidence) -> WaitReason | None:
    """The reason for which nothing can be concluded about a folder, whatever the catalog says."""
    if evidence.version < evidence.seen_at:
        return WaitReason.CATALOG_OLDER
    if not folder.is_readable:
        return WaitReason.UNREADABLE
    if evidence.grace_ms == 0:
        return None
    if folder.fenced_ms is None:
        return WaitReason.UNREADABLE
    is_young = evidence.now_ms - folder.fenced_ms < evidence.grace_ms
    return WaitReason.YOUNG if is_young else None


def _without_table(folder: RegionFolder, evidence: Evidence) -> Judgement:
    if evidence.is_restored:
        return Judgement(folder, wait=WaitReason.RESTORED)
    return Judgement(folder, OrphanReason.NO_TABLE)


def _unnamed(folder: RegionFolder, region: RegionRoute | None, unread: frozenset[str]) -> Judgement:
    """Judges a folder that the route of its table does not name."""
    if region is None:
        return Judgement(folder, OrphanReason.NO_REGION)
    if region.unverified:
        return Judgement(folder, wait=WaitReason.UNVERIFIED)
    if region.state is RegionState.LOST:
        return Judgement(folder, wait=WaitReason.LOST)
    if not unread.isdisjoint((*region.roots, *region.borrows)):
        return Judgement(folder, wait=WaitReason.READERS)
    if folder.epoch > region.epoch or folder.copies_version > region.copies_version:
        return Judgement(folder, wait=WaitReason.CATALOG_OLDER)
    if folder.epoch < region.epoch:
        return Judgement(folder, OrphanReason.OLD_EPOCH)
    return Judgement(folder, OrphanReason.OTHER_ROOT)
