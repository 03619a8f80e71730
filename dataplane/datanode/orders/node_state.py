"""The state that a node must never forget, as a fold over its journal. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import assert_never

from dataplane.datanode.orders.journal_format import (
    Adopted,
    Dropped,
    Executed,
    Joined,
    JournalOpened,
    Record,
    TermSeen,
)

MAKES = frozenset({"create", "open"})
"""Orders after which the node has the region."""


@dataclass(slots=True)
class JournalState:
    """Invariants: `term` never falls; `executed` of a region rises by (term, number); `dropped`
    only grows; `cluster_id` is set once. An adoption begins terms, orders and tombstones anew."""

    node_id: str
    cluster_id: str | None = None
    adopted_from: str | None = None
    """The cluster before `cluster_id`; None: it was never adopted."""
    term: int = 0
    executed: dict[int, Executed] = field(default_factory=dict)
    """The last order executed, by region id."""
    dropped: set[int] = field(default_factory=set)
    """Regions that `cluster_id` has dropped: never created or opened again."""
    dropped_before: set[int] = field(default_factory=set)
    """Regions that a cluster before it has dropped, and this one has not made again. They are told
    of in the inventory, and refuse nothing: orders of that cluster are refused by its id
    (docs/decisions/0332)."""

    @property
    def tombstones(self) -> set[int]:
        """Regions that this node was ordered to drop, by whichever cluster, and does not have."""
        return self.dropped | self.dropped_before

    def take(self, record: Record) -> None:
        match record:
            case JournalOpened():
                self.node_id = record.node_id
            case Joined():
                self.cluster_id = record.cluster_id
            case Adopted():
                self.cluster_id, self.adopted_from = record.cluster_id, record.from_cluster_id
                self.term = 0
                self.executed.clear()
                self.dropped_before |= self.dropped
                self.dropped = set()
            case TermSeen():
                self.term = max(self.term, record.term)
            case Dropped():
                self.dropped.add(int(record.region_id))
            case Executed():
                self._take_executed(record)
            case _:
                assert_never(record)

    def _take_executed(self, record: Executed) -> None:
        last = self.executed.get(int(record.region_id))
        if last is None or (last.term, last.number) <= (record.term, record.number):
            self.executed[int(record.region_id)] = record
        if record.op in MAKES and record.error is None:
            self.dropped_before.discard(int(record.region_id))

    def records(self) -> list[Record]:
        """The shortest journal that says the same. What was executed under a term below `term` is
        left out: no order of that term is taken any more."""
        out: list[Record] = [JournalOpened(node_id=self.node_id)]
        out.extend(_tombstones(self.dropped_before))
        if self.cluster_id is not None and self.adopted_from is not None:
            adopted = Adopted(cluster_id=self.cluster_id, from_cluster_id=self.adopted_from)
            out.append(adopted)
        elif self.cluster_id is not None:
            out.append(Joined(cluster_id=self.cluster_id))
        if self.term:
            out.append(TermSeen(term=self.term))
        out.extend(_tombstones(self.dropped))
        current = (self.executed[region] for region in sorted(self.executed))
        out.extend(record for record in current if record.term >= self.term)
        return out


def _tombstones(regions: Iterable[int]) -> Iterator[Dropped]:
    return (Dropped(region_id=str(region)) for region in sorted(regions))


def fold(node_id: str, records: Iterable[Record]) -> JournalState:
    state = JournalState(node_id)
    for record in records:
        state.take(record)
    return state
