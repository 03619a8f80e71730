"""The regions that a node reported, by id, over the columns of its heartbeats."""

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import compress
from typing import Any

from metasrv_base.concurrency.turns import Turns, slices
from metasrv_base.wire.node.nodes import (
    HEARTBEAT_REGIONS_MAX,
    HeartbeatRequest,
    RegionColumns,
    RegionStat,
    digest_of,
)

DECISIVE = ("epoch", "state", "root", "copies_version")
"""Columns that leases and orders depend on. The others are numbers for people and placement."""


@dataclass(frozen=True, slots=True)
class ReportChanges:
    """The difference between two reports of a node."""

    changed: RegionColumns
    """Regions that are new, or other than before."""
    gone: Sequence[str]
    digest: int
    """`digest_of` all regions after the changes."""


class RegionReport(Mapping[str, RegionStat]):
    """A whole report, and the changes that followed. It keeps the columns, and makes the statistics
    of a region when asked for them: 50,000 kept objects would cost every garbage collection some
    50 ms."""

    def __init__(self, columns: RegionColumns) -> None:
        self._columns = _packed(columns)
        self._positions = {region: position for position, region in enumerate(columns.region_id)}
        self._digest: int | None = None

    def __getitem__(self, region_id: str) -> RegionStat:
        return self._columns.stat(self._positions[region_id])

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, region_id: object) -> bool:
        return region_id in self._positions

    def is_open(self, region_id: str, epoch: int) -> bool:
        """Whether the node has it open at *epoch*. Makes no object."""
        position = self._positions.get(region_id)
        columns = self._columns
        return position is not None and (columns.epoch[position], columns.state[position]) == (
            epoch,
            "open",
        )

    def copies_version(self, region_id: str) -> int:
        """The version of its copies that the node was told last. Makes no object."""
        versions = self._columns.copies_version
        return versions[self._positions[region_id]] if versions else 0

    def in_state(self, wanted_state: str) -> dict[str, int]:
        """Region id -> epoch of the regions that it reports in that state. Makes no object of the
        others."""
        columns = self._columns
        if wanted_state not in columns.state:
            return {}
        rows = zip(columns.region_id, columns.epoch, columns.state, strict=True)
        return {region_id: epoch for region_id, epoch, state in rows if state == wanted_state}

    def counts(self) -> Mapping[str, int]:
        """Counts of its regions, by state."""
        return Counter(self._columns.state)

    # Changes ------------------------------------------------------------------------------------

    def digested(self) -> Turns[None]:
        """Computes its digest, from which on it takes changes: some microseconds a region."""
        digest = 0
        for region_ids in slices(self):
            digest ^= digest_of(self[region_id] for region_id in region_ids)
            yield
        self._digest = digest

    def after(self, changes: ReportChanges) -> "RegionReport | None":
        """The report with *changes*: this one, with new numbers in it, where they change nothing
        that leases or orders depend on; else another. None: they are of another report than this
        one, which stays as it is, or the node would have more than HEARTBEAT_REGIONS_MAX."""
        changed, columns = changes.changed, self._columns
        ids = changed.region_id
        if self._digest is None or not all(region_id in self for region_id in changes.gone):
            return None
        added = sum(region_id not in self for region_id in ids)
        if len(self) + added - len(frozenset(changes.gone)) > HEARTBEAT_REGIONS_MAX:
            return None
        before = [self[region_id] for region_id in (*ids, *changes.gone) if region_id in self]
        reported = [changed.stat(index) for index in range(len(ids))]
        digest = self._digest ^ digest_of(before) ^ digest_of(reported)
        if digest != changes.digest:
            return None
        is_same = not changes.gone and len(before) == len(ids)
        if is_same and not any(map(_is_decisive, before, reported)):
            for stat in reported:
                position = self._positions[stat.region_id]
                for name in NUMBERS:
                    getattr(columns, name)[position] = getattr(stat, name)
            self._digest = digest
            return self
        report = RegionReport(self._with(reported, frozenset(changes.gone)))
        report._digest = digest
        return report

    def _with(self, reported: Iterable[RegionStat], gone: Set[str]) -> RegionColumns:
        """Copies of the columns, changed."""
        old = self._columns
        copies: dict[str, Any] = {
            name: list(getattr(old, name)) for name in RegionColumns.model_fields
        }
        copies["copies_version"] = copies["copies_version"] or [0] * len(self)
        for stat in reported:
            position = self._positions.get(stat.region_id)
            for name, column in copies.items():
                if position is None:
                    column.append(getattr(stat, name))
                else:
                    column[position] = getattr(stat, name)
        if gone:
            stays = [region_id not in gone for region_id in copies["region_id"]]
            copies = {name: list(compress(column, stays)) for name, column in copies.items()}
        return RegionColumns.model_construct(**copies)


def report_of(
    request: HeartbeatRequest, kept: tuple[int, RegionReport] | None
) -> RegionReport | None:
    """Returns the regions of a node as of a heartbeat. *kept*: the heartbeat that was applied
    last, and its report. None: the heartbeat tells changes of another one."""
    if request.changes_since is None:
        return RegionReport(request.regions)
    if kept is None or kept[0] != request.changes_since or request.digest is None:
        return None
    return kept[1].after(ReportChanges(request.regions, request.gone, int(request.digest, 16)))


def _packed(columns: RegionColumns) -> RegionColumns:
    """The same, in half the memory: no object for a number, and one for each state."""
    lists: dict[str, Any] = {name: getattr(columns, name) for name in RegionColumns.model_fields}
    for name in INTEGERS:
        lists[name] = array("q", lists[name])
    lists["state"] = list(map(sys.intern, columns.state))
    return RegionColumns.model_construct(**lists)


INTEGERS = tuple(
    name for name in RegionColumns.model_fields if name not in {"region_id", "state", "root"}
)
NUMBERS = tuple(name for name in RegionColumns.model_fields if name not in {"region_id", *DECISIVE})


def _is_decisive(before: RegionStat, after: RegionStat) -> bool:
    return any(getattr(before, name) != getattr(after, name) for name in DECISIVE)
