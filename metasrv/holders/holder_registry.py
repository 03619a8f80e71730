"""The leader's registry of holders that may still use an older schema, for one term
(docs/protocols.md P4 and P6).

Pure: times are arguments, in monotonic milliseconds of this server. A holder counts its lease from
before it sent its acknowledgement; we count from when we send the answer. What an earlier leader
granted is unknown: it counts as a full lease, at an unknown version, until election TTL + W after
our own election.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from keys.model.holders import HolderRecord
from keys.model.transitions import Went
from metasrv.nodes.lease_table import wait_ms
from metasrv_base.errors import Conflict, NotFound
from metasrv_base.wire.frontend.holders import AcknowledgeRequest, Pin
from metasrv_base.wire.problem.problems import FieldError, refuse
from procedures.ports import Behind


@dataclass(slots=True)
class HolderEntry:
    """One holder of this term. Owned by the HolderRegistry."""

    holder: HolderRecord
    free_at_ms: int
    """The time from which on no lease of it can be alive."""
    have: int | None = None
    """The catalog version it is at, at least; None: unknown to this leader."""
    pinned: Mapping[int, Pin] = field(default_factory=dict)
    """Table id -> the oldest version in use there."""
    sequence: int = -1
    """The sequence of the last acknowledgement heard from this incarnation; -1: none yet."""
    heard_ms: int | None = None
    statement_p99_ms: float | None = None
    is_leaving: bool = False
    """The removal of its registration is on its way: no lease is granted any more."""

    def uses_below(self, wait: "Wait") -> bool:
        """Whether it may still use the table of *wait* below the version that is waited for."""
        if self.have is None or self.have < wait.need:
            return True
        return self.pin_below(wait) is not None

    def pin_below(self, wait: "Wait") -> Pin | None:
        """The transaction that keeps it there; None: it has not told of the version yet."""
        pin = self.pinned.get(wait.table_id)
        return None if pin is None or pin.schema_version >= wait.schema_version else pin


@dataclass(slots=True, eq=False)
class Wait:
    """Somebody wants no holder to use a table below a schema version."""

    table_id: int
    schema_version: int
    need: int
    """The catalog version at which the table has it."""
    over: Callable[[], None]
    """Called once nobody is behind any more."""
    pending: dict[str, str | None] = field(default_factory=dict)
    """Ids of the holders that are, and the last transaction of each that was in the way."""
    went: Callable[[str, Went, str | None], None] = lambda holder_id, went, transaction: None
    """Called for each that was behind and is so no more, before `over`."""


@dataclass(slots=True)
class HolderRegistry:
    """The holders as this term knows them. A registration is stored before its lease is granted,
    and a removal is told here after it was committed."""

    lease_ms: int
    election_ttl_ms: int
    elected_at_ms: int
    _entries: dict[str, HolderEntry] = field(default_factory=dict)
    _waits: list[Wait] = field(default_factory=list)

    @property
    def quiet_until_ms(self) -> int:
        """The time until which leases of a predecessor may be alive."""
        return self.elected_at_ms + self.election_ttl_ms + wait_ms(self.lease_ms)

    # Told by the store and by holders -----------------------------------------------------------

    def found(self, holder: HolderRecord) -> None:
        """Registered under an earlier leader."""
        self._entries[holder.holder_id] = HolderEntry(holder, self.quiet_until_ms)

    def registered(
        self, holder: HolderRecord, version: int, pinned: Iterable[Pin], now_ms: int
    ) -> None:
        """Call after the commit and before the answer, which declares *version*: the holder serves
        nothing before it has applied that, so nobody waits for it to say so. Its last incarnation
        is heard no more, and not waited for; what is left of its transactions is in *pinned*.

        A repeat only renews the lease: the holder may have begun to serve after the first answer,
        which declared an older version. Raises Conflict("stale-incarnation") for one that is being
        removed.
        """
        entry_before = self._entries.get(holder.holder_id)
        if entry_before is not None and entry_before.holder.incarnation == holder.incarnation:
            if entry_before.is_leaving:
                raise Conflict("stale-incarnation", node=holder.holder_id)
            entry_before.free_at_ms = max(entry_before.free_at_ms, self._free_at(now_ms))
            return
        entry = self._entries[holder.holder_id] = HolderEntry(
            holder,
            self._free_at(now_ms),
            have=version,
            pinned={pin.table_id: pin for pin in pinned},
        )
        self._look(entry)

    def acknowledged(self, request: AcknowledgeRequest, now_ms: int) -> bool:
        """Renews the lease. One that is not newer changes nothing, and is told as False.

        Raises NotFound for who is not registered, Conflict("stale-incarnation"), and Refused for a
        version below the one acknowledged before.
        """
        entry = self._heard(request.holder_id, request.incarnation)
        if request.sequence <= entry.sequence:
            return False
        if entry.have is not None and request.version < entry.have:
            detail = f"it was {entry.have} before: a holder never goes back"
            refuse((FieldError(pointer="/version", detail=detail),))
        entry.sequence, entry.heard_ms = request.sequence, now_ms
        entry.have = request.version
        entry.pinned = {pin.table_id: pin for pin in request.pinned}
        entry.statement_p99_ms = request.statement_p99_ms
        entry.free_at_ms = self._free_at(now_ms)
        self._look(entry)
        return True

    def leaves(self, holder_id: str, incarnation: str) -> None:
        """Call before its removal is sent: from here on it is granted nothing.

        Raises as `acknowledged`.
        """
        self._heard(holder_id, incarnation).is_leaving = True

    def stays(self, holder_id: str, incarnation: str) -> None:
        """Notes that its removal was not done."""
        entry = self._entries.get(holder_id)
        if entry is not None and entry.holder.incarnation == incarnation:
            entry.is_leaving = False

    def removed(self, holder_id: str, incarnation: str) -> None:
        """Notes that its registration is gone, by a committed transaction."""
        entry = self._entries.get(holder_id)
        if entry is None or entry.holder.incarnation != incarnation:
            return
        del self._entries[holder_id]
        for wait in tuple(self._waits):
            self._went(wait, holder_id, Went.REMOVED)

    # Waiting ------------------------------------------------------------------------------------

    def begin(self, wait: Wait) -> None:
        """*wait* is told when it is over, perhaps at once. End it whatever happens."""
        self._waits.append(wait)
        for entry in self._entries.values():
            if entry.uses_below(wait):
                _pend(wait, entry)
        if not wait.pending:
            wait.over()

    def end(self, wait: Wait) -> None:
        self._waits.remove(wait)

    def behind(self, wait: Wait, now_ms: int) -> tuple[Behind, ...]:
        """Holders that block *wait*, by id. May be called before the wait starts."""
        return tuple(
            _behind(entry, wait, max(0, entry.free_at_ms - now_ms))
            for _, entry in sorted(self._entries.items())
            if entry.uses_below(wait)
        )

    def waiting(self, table_id: int, schema_version: int) -> Wait | None:
        """The wait for that version that began first, of those that have not ended."""
        version = (table_id, schema_version)
        return next((w for w in self._waits if (w.table_id, w.schema_version) == version), None)

    @property
    def waits(self) -> int:
        """The number of steps that wait for holders."""
        return sum(bool(wait.pending) for wait in self._waits)

    def ended(self, now_ms: int) -> tuple[HolderRecord, ...]:
        """Holders whose lease has ended, by the arithmetic of P4, and whose removal has not
        begun."""
        return tuple(
            entry.holder
            for entry in self._entries.values()
            if entry.free_at_ms <= now_ms and not entry.is_leaving
        )

    # Asking -------------------------------------------------------------------------------------

    def entries(self) -> tuple[HolderEntry, ...]:
        """All holders, by id."""
        return tuple(self._entries[holder_id] for holder_id in sorted(self._entries))

    def entry(self, holder_id: str) -> HolderEntry | None:
        return self._entries.get(holder_id)

    def _heard(self, holder_id: str, incarnation: str) -> HolderEntry:
        entry = self._entries.get(holder_id)
        if entry is None or entry.is_leaving:
            raise NotFound(what="holder", name=holder_id)
        if entry.holder.incarnation != incarnation:
            raise Conflict("stale-incarnation", node=holder_id)
        return entry

    def _free_at(self, now_ms: int) -> int:
        """Counted from the answer that is about to be sent."""
        return now_ms + wait_ms(self.lease_ms)

    def _look(self, entry: HolderEntry) -> None:
        for wait in tuple(self._waits):
            if entry.uses_below(wait):
                _pend(wait, entry)
            else:
                self._went(wait, entry.holder.holder_id, Went.FOLLOWED)

    def _went(self, wait: Wait, holder_id: str, went: Went) -> None:
        if holder_id in wait.pending:
            wait.went(holder_id, went, wait.pending.pop(holder_id))
            if not wait.pending:
                wait.over()


def _pend(wait: Wait, entry: HolderEntry) -> None:
    pin, holder_id = entry.pin_below(wait), entry.holder.holder_id
    before = wait.pending.get(holder_id)
    wait.pending[holder_id] = before if pin is None else pin.transaction


def _behind(entry: HolderEntry, wait: Wait, left_ms: int) -> Behind:
    """The transaction is named only where it is what is in the way."""
    pin = entry.pin_below(wait)
    if pin is None:
        return Behind(entry.holder.holder_id, entry.have, wait.need, left_ms)
    return Behind(
        entry.holder.holder_id, entry.have, wait.need, left_ms, pin.transaction, pin.age_ms
    )
