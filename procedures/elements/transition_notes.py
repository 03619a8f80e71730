"""Notes of a step on schema transitions, and their form in the record once the step is
committed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from keys.commit.txn import Stamp
from keys.model.tables import TableInfo
from keys.model.transitions import (
    LATE_MAX,
    SHIFTS_MAX,
    TRANSITIONS_MAX,
    ElementChange,
    LateHolder,
    Transition,
)
from metasrv_base.elements.states import ElementState
from procedures.elements.shifts import shifts
from procedures.ports import Drain


@dataclass(frozen=True, slots=True)
class Published:
    """A transition that is published when the step commits."""

    table_id: int
    schema_version: int
    shifts: tuple[ElementChange, ...]
    regions: int
    """Number of regions that are ready for it."""
    told_ms: int
    """Duration until they were, in ms."""


@dataclass(frozen=True, slots=True)
class Drained:
    """A completed wait: no holder uses the table below that version any more."""

    table_id: int
    schema_version: int
    at_ms: int
    """Wall clock."""
    holders: int
    """Number of holders that have acknowledged it."""
    late: tuple[LateHolder, ...] = ()


TransitionNote: TypeAlias = Published | Drained


@dataclass(slots=True)
class Passages:
    """The transitions of one step, over all its attempts. In memory until the step is committed."""

    _published: dict[tuple[int, int], Published] = field(default_factory=dict)
    _drained: dict[tuple[int, int], Drained] = field(default_factory=dict)

    def note(self, passage: TransitionNote) -> None:
        """An attempt that was not committed published nothing; what it waited for is over."""
        version = (passage.table_id, passage.schema_version)
        if isinstance(passage, Published):
            self._published[version] = passage
        else:
            self._drained.setdefault(version, passage)

    @property
    def published(self) -> tuple[Published, ...]:
        return tuple(self._published.values())

    def all(self) -> tuple[TransitionNote, ...]:
        return (*self.published, *self._drained.values())


def published(before: TableInfo, after: TableInfo, regions: int, told_ms: int) -> Published:
    return Published(
        after.table_id,
        after.schema_version,
        shifts(before, after)[:SHIFTS_MAX],
        regions,
        told_ms,
    )


def hidden(info: TableInfo) -> Published:
    """A table that nobody finds any more: no region is told, for no statement will name it."""
    before, after = ElementState.PUBLIC, ElementState.WRITE_ONLY
    shift = ElementChange(
        what="table", id=info.table_id, name=info.name, before=before, after=after
    )
    return Published(info.table_id, info.schema_version + 1, (shift,), regions=0, told_ms=0)


def drained(table_id: int, schema_version: int, drain: Drain, at_ms: int) -> Drained:
    slowest = sorted(drain.late, key=lambda holder: (-holder.ms, holder.holder))[:LATE_MAX]
    return Drained(table_id, schema_version, at_ms, drain.holders, tuple(slowest))


def kept(
    transitions: Sequence[Transition], passages: Iterable[TransitionNote], stamp: Stamp
) -> tuple[Transition, ...]:
    """The transitions of a record, once a step that saw *passages* is committed. A version that is
    in it is not published again, and is drained once."""
    by_version = {
        (transition.table_id, transition.schema_version): transition for transition in transitions
    }
    for passage in passages:
        version = (passage.table_id, passage.schema_version)
        existing = by_version.get(version)
        if isinstance(passage, Published) and existing is None:
            by_version[version] = Transition(
                table_id=passage.table_id,
                schema_version=passage.schema_version,
                shifts=passage.shifts,
                regions=passage.regions,
                told_ms=passage.told_ms,
                catalog_version=stamp.catalog_version,
                published_at_ms=stamp.at_ms,
            )
        elif (
            isinstance(passage, Drained) and existing is not None and existing.drained_at_ms is None
        ):
            update = {
                "drained_at_ms": passage.at_ms,
                "holders": passage.holders,
                "late": passage.late,
            }
            by_version[version] = existing.model_copy(update=update)
    return tuple(by_version.values())[-TRANSITIONS_MAX:]
