"""The holders of locks: a pure function of the stored records (docs/protocols.md P2).

In order of submission each procedure takes all its locks at once, or waits; nobody overtakes a
waiter on one of its keys, but for one case that the overtaker's own record names: who wants
placement locks alone goes before those that still waited for a schema lock when it was submitted.
So there is no deadlock and no starvation, an hour of reorg never delays a failover, and a new
leader computes the same holders though no grant was ever written.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from keys.model.records import Lock, LockMode, ProcedureRecord
from metasrv_base.ids import RegionId, table_of
from metasrv_base.values.frozen import frozen
from procedures.locking.locks import is_placement, is_schema_side, route_key

OVERTAKES_MAX = 256  # named in one record; with more ahead of it, it stands in line
BLOCKERS_MAX = 16  # named to people for one claim, oldest first
CONFLICTS_MAX = 256  # named for one key, oldest first


@frozen
class LockClaim:
    """The locks that a live procedure claims from its grant to its end."""

    procedure: str
    submission: int
    locks: tuple[Lock, ...]
    parent: str | None = None
    overtakes: frozenset[str] = frozenset()
    """Procedures that it precedes although they were submitted earlier; stored in its record."""


def claim_of(procedure: str, record: ProcedureRecord) -> LockClaim:
    """Returns the claim of a record."""
    overtakes = frozenset(record.overtakes)
    return LockClaim(procedure, record.submission, claimed(record), record.parent, overtakes)


def claimed(record: ProcedureRecord) -> tuple[Lock, ...]:
    """Its locks. One that is poisoned on the schema side lets go of the placement side: it does not
    stop a failover."""
    locks = record.locks
    if record.poisoned and any(is_schema_side(lock.key) for lock in locks):
        locks = tuple(lock for lock in locks if not is_placement(lock.key))
    return locks


@dataclass(frozen=True, slots=True)
class Blocked:
    """A reason for which a claim waits: *by* holds, or waits earlier for, the same *key*."""

    key: str
    by: str


Holders = Mapping[str, tuple[Blocked, ...]]
"""Procedure -> what blocks it; none: it holds all its locks."""


def holders(claims: Iterable[LockClaim]) -> Holders:
    """Every claim, with what blocks it."""
    table = LockTable()
    for claim in sorted(claims, key=lambda claim: claim.submission):
        table.add(claim)
    return {procedure: table.blocked(procedure) for procedure in table.claims}


Place = tuple[int, str]
"""Submission number and procedure."""


@dataclass(slots=True)
class _Line:
    """The claims that hold or want one key, by position, and the exclusive ones among them."""

    modes: dict[str, LockMode] = field(default_factory=dict)
    everybody: list[Place] = field(default_factory=list)
    exclusive: list[Place] = field(default_factory=list)

    def conflicting(self, mode: LockMode) -> list[Place]:
        return self.everybody if mode is LockMode.EXCLUSIVE else self.exclusive

    def conflicts(self, other: str, mode: LockMode) -> bool:
        return other in self.modes and LockMode.EXCLUSIVE in (mode, self.modes[other])

    def join(self, position: Place, mode: LockMode) -> None:
        self.modes[position[1]] = mode
        insort(self.everybody, position)
        if mode is LockMode.EXCLUSIVE:
            insort(self.exclusive, position)

    def leave(self, position: Place) -> None:
        del self.everybody[bisect_left(self.everybody, position)]
        if self.modes.pop(position[1]) is LockMode.EXCLUSIVE:
            del self.exclusive[bisect_left(self.exclusive, position)]


NOBODY = _Line()


@dataclass(slots=True)
class LockTable:
    """`holders`, kept while claims come and go.

    A claim's place on each of its keys is its submission number. Each claim that waits watches one
    that it waits for: the nearest before it. When that goes, it is looked at again, and perhaps
    watches another. So the end of a holder costs a look at the head of each line, however long the
    lines are. What became free is found by `look_again`, a bounded number of claims at a time.
    """

    claims: dict[str, LockClaim] = field(default_factory=dict)
    _lines: dict[str, _Line] = field(default_factory=dict)
    _watches: dict[str, str | None] = field(default_factory=dict)
    """Procedure -> one that it waits for; None: it holds all its locks."""
    _watchers: dict[str, set[str]] = field(default_factory=dict)
    _overtakers: dict[str, set[str]] = field(default_factory=dict)
    _children: dict[str, set[str]] = field(default_factory=dict)
    _due: deque[str] = field(default_factory=deque)
    """Claims to evaluate again."""
    looks: int = 0
    """The number of looks at claims so far, repeated ones included; a measure of the cost."""

    def holds(self, procedure: str) -> bool:
        return self._watches[procedure] is None

    def blocked(self, procedure: str) -> tuple[Blocked, ...]:
        """Returns the claims that *procedure* waits for, at most BLOCKERS_MAX."""
        return tuple(islice(self._reasons(self.claims[procedure]), BLOCKERS_MAX))

    # Coming and going --------------------------------------------------------------------------

    def add(self, claim: LockClaim) -> frozenset[str]:
        """The procedures that hold now and did not, or the other way round; and *claim*'s."""
        procedure = claim.procedure
        assert procedure not in self.claims
        self.claims[procedure] = claim
        for elder in claim.overtakes:
            self._overtakers.setdefault(elder, set()).add(procedure)
        if claim.parent is not None:
            self._children.setdefault(claim.parent, set()).add(procedure)
        self._join(claim, claim.locks)
        self._watch(procedure, None)
        concerned = {*claim.overtakes, *self._children.get(procedure, ())}
        return self._look([procedure, *concerned]) | {procedure}

    def replace(self, claim: LockClaim) -> frozenset[str]:
        """Replaces a claim by one with other locks, at the same position; returns what `add`
        does. Holders of a newly claimed lock keep it."""
        procedure, old = claim.procedure, self.claims[claim.procedure]
        new = replace(claim, overtakes=claim.overtakes | old.overtakes)
        self.claims[procedure] = new
        kept = set(old.locks) & set(new.locks)
        self._leave(old, [lock for lock in old.locks if lock not in kept])
        self._join(new, [lock for lock in new.locks if lock not in kept])
        self._wake(procedure)
        return self._look([procedure])

    def remove(self, procedure: str) -> None:
        """Removes the claim, and marks those that waited for it as due."""
        claim = self.claims[procedure]
        self._wake(procedure)
        self._leave(claim, claim.locks)
        self._watch(procedure, None)
        del self.claims[procedure], self._watches[procedure]
        for elder in claim.overtakes:
            _drop(self._overtakers, elder, procedure)
        if claim.parent is not None:
            _drop(self._children, claim.parent, procedure)

    @property
    def is_due(self) -> bool:
        return bool(self._due)

    def look_again(self, at_most: int) -> frozenset[str]:
        """Evaluates at most *at_most* due claims, oldest first; returns what `add` does."""
        left = [self._due.popleft() for _ in range(min(at_most, len(self._due)))]
        return self._look(left)

    # Asking ------------------------------------------------------------------------------------

    def overtaken_by(
        self, locks: tuple[Lock, ...], arriving: Mapping[str, tuple[Lock, ...]]
    ) -> frozenset[str]:
        """Returns the procedures that a new claim on *locks* precedes: none, unless it claims
        placement locks alone; else those that wait for a schema lock, and those *arriving* that
        may have to."""
        if any(is_schema_side(lock.key) for lock in locks):
            return frozenset()
        overtaken = {other for other, its in arriving.items() if _takes_both_sides(its, locks)}
        for lock in locks:
            for _, other in self._line(lock.key).conflicting(lock.mode):
                if self._waits_for_schema(self.claims[other]):
                    overtaken.add(other)
                if len(overtaken) > OVERTAKES_MAX:
                    return frozenset()
        return frozenset(overtaken)

    def conflicts(self, locks: Iterable[Lock]) -> tuple[tuple[str, str], ...]:
        """Returns the procedures whose claims a new claim on *locks* conflicts with, and the key
        of each: (procedure, key), oldest procedure first."""
        holders = [
            (submission, position, other, lock.key)
            for position, lock in enumerate(locks)
            for submission, other in self._line(lock.key).conflicting(lock.mode)[:CONFLICTS_MAX]
        ]
        return tuple((procedure, key) for _, _, procedure, key in sorted(holders))

    def line(self, key: str) -> tuple[tuple[LockClaim, LockMode], ...]:
        """Returns the claims that hold or want *key*, in order."""
        line = self._line(key)
        return tuple(
            (self.claims[procedure], line.modes[procedure]) for _, procedure in line.everybody
        )

    def is_claimed(self, key: str) -> bool:
        return key in self._lines

    def keys(self) -> tuple[str, ...]:
        return tuple(sorted(self._lines))

    def children(self, procedure: str) -> tuple[str, ...]:
        """Returns the active children of *procedure*, oldest first."""
        ids = self._children.get(procedure, ())
        return tuple(sorted(ids, key=lambda child: self.claims[child].submission))

    # Lines -------------------------------------------------------------------------------------

    def _line(self, key: str) -> _Line:
        return self._lines.get(key, NOBODY)

    def _join(self, claim: LockClaim, locks: Iterable[Lock]) -> None:
        """Adds a claim to the lines of *locks*. Younger claims that hold a key already keep it
        and overtake it."""
        position, family = _place(claim), {elder.procedure for elder in self._elders(claim)}
        for lock in locks:
            line = self._lines.setdefault(lock.key, _Line())
            line.join(position, lock.mode)
            if line.everybody[-1] == position:
                continue
            behind = line.conflicting(lock.mode)
            for _, other in behind[bisect_left(behind, position) :]:
                if other != claim.procedure and other not in family and self.holds(other):
                    its = self.claims[other]
                    self.claims[other] = replace(its, overtakes=its.overtakes | {claim.procedure})
                    self._overtakers.setdefault(claim.procedure, set()).add(other)

    def _leave(self, claim: LockClaim, locks: Iterable[Lock]) -> None:
        for lock in locks:
            self._lines[lock.key].leave(_place(claim))
            if not self._lines[lock.key].everybody:
                del self._lines[lock.key]

    # Looking -----------------------------------------------------------------------------------

    def _look(self, concerned: Iterable[str]) -> frozenset[str]:
        """Returns those of *concerned*, and of their children, that began or ceased to hold
        their locks."""
        changed: set[str] = set()
        left = [procedure for procedure in concerned if procedure in self.claims]
        while left:
            procedure = left.pop()
            self.looks += 1
            held = self.holds(procedure)
            self._watch(procedure, next(self._nearest(self.claims[procedure]), None))
            if held != self.holds(procedure):
                changed.add(procedure)
                left += self._children.get(procedure, ())
        return frozenset(changed)

    def _watch(self, procedure: str, other: str | None) -> None:
        before = self._watches.get(procedure)
        if before is not None:
            _drop(self._watchers, before, procedure)
        self._watches[procedure] = other
        if other is not None:
            self._watchers.setdefault(other, set()).add(procedure)

    def _wake(self, procedure: str) -> None:
        """Marks the procedures that wait for this one, or run under its locks, as due."""
        due = self._watchers.get(procedure, set()) | self._children.get(procedure, set())
        self._due.extend(sorted(due, key=lambda other: self.claims[other].submission))

    def _reasons(self, claim: LockClaim) -> Iterator[Blocked]:
        """All of them, key by key, oldest first."""
        elders = self._elders(claim)
        for lock in claim.locks:
            for other in self._before(claim, lock, elders, newest_first=False):
                yield Blocked(lock.key, other)

    def _nearest(self, claim: LockClaim) -> Iterator[str]:
        """Procedures that *claim* waits for: on each key first the last of those before it."""
        elders = self._elders(claim)
        for lock in claim.locks:
            yield from self._before(claim, lock, elders, newest_first=True)

    def _waits_for_schema(self, claim: LockClaim) -> bool:
        elders = self._elders(claim)
        return any(
            next(self._before(claim, lock, elders, newest_first=True), None) is not None
            for lock in claim.locks
            if is_schema_side(lock.key)
        )

    def _before(
        self, claim: LockClaim, lock: Lock, elders: tuple[LockClaim, ...], *, newest_first: bool
    ) -> Iterator[str]:
        """Yields the procedures that precede *claim* on this key and conflict with it. Under an
        elder's lock these are members of its family only, and the elder itself while it waits."""
        cover = next((elder for elder in elders if _covers(elder, lock)), None)
        if cover is not None:
            yield from self._relatives_before(claim, lock, elders, cover)
            if not self.holds(cover.procedure):
                yield cover.procedure
            return
        conflicting = self._line(lock.key).conflicting(lock.mode)
        mine, family = _place(claim), {elder.procedure for elder in elders}
        ahead = range(bisect_left(conflicting, mine))
        for number in reversed(ahead) if newest_first else ahead:
            other = conflicting[number][1]
            if other not in family and other not in claim.overtakes:
                yield other
        line = self._line(lock.key)
        for other in sorted(self._overtakers.get(claim.procedure, ())):
            is_behind = _place(self.claims[other]) > mine
            if is_behind and other not in family and line.conflicts(other, lock.mode):
                yield other

    def _relatives_before(
        self, claim: LockClaim, lock: Lock, elders: tuple[LockClaim, ...], cover: LockClaim
    ) -> Iterator[str]:
        line, left = self._line(lock.key), [cover.procedure]
        relatives: list[Place] = []
        while left:
            for child in self._children.get(left.pop(), ()):
                left.append(child)
                its = self.claims[child]
                if its in elders or its == claim or not line.conflicts(child, lock.mode):
                    continue
                if (_place(its) < _place(claim)) != (
                    child in claim.overtakes or claim.procedure in its.overtakes
                ):
                    relatives.append(_place(its))
        yield from (other for _, other in sorted(relatives))

    def _elders(self, claim: LockClaim) -> tuple[LockClaim, ...]:
        """Its parent, the parent's parent, ...: a child runs under their locks."""
        elders: list[LockClaim] = []
        parent = claim.parent
        while parent is not None and parent in self.claims:
            elders.append(self.claims[parent])
            parent = self.claims[parent].parent
        return tuple(elders)


def _place(claim: LockClaim) -> Place:
    return claim.submission, claim.procedure


def _drop(index: dict[str, set[str]], name: str, member: str) -> None:
    members = index.get(name, set())
    members.discard(member)
    if not members:
        index.pop(name, None)


def _takes_both_sides(claim: tuple[Lock, ...], placement: tuple[Lock, ...]) -> bool:
    """Whether *claim* has locks of the schema side, and one that *placement* cannot share."""
    modes = {lock.key: lock.mode for lock in placement}
    return any(is_schema_side(lock.key) for lock in claim) and any(
        LockMode.EXCLUSIVE in (lock.mode, modes[lock.key]) for lock in claim if lock.key in modes
    )


def _covers(elder: LockClaim, lock: Lock) -> bool:
    """Whether nobody but the elder's family can hold *lock*, so that its child need not queue.

    Were a child to queue behind a stranger that waits for its parent, nobody would ever go on.
    """
    route = _route_of(lock.key)
    return any(
        (held.key == lock.key and held.mode in (LockMode.EXCLUSIVE, lock.mode))
        or (held.key == route and held.mode is LockMode.EXCLUSIVE)
        for held in elder.locks
    )


def _route_of(key: str) -> str | None:
    """The lock that everybody takes who takes this region."""
    side, _, region = key.partition(":")
    return route_key(table_of(RegionId(int(region)))) if side == "region" else None
