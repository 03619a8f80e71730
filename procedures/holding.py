"""Who holds which lock: a pure function of the stored records (PROTOCOLS P2).

In order of submission each procedure takes all its locks at once, or waits; nobody overtakes a
waiter on one of its keys, but for one case that the overtaker's own record names: who wants
placement locks alone goes before those that still waited for a schema lock when it was submitted.
So there is no deadlock and no starvation, an hour of reorg never delays a failover, and a new
leader computes the same holders though no grant was ever written.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from base.ids import RegionId, table_of
from keys.records import Lock, LockMode, ProcedureRecord
from procedures.locks import is_placement, is_schema_side, route_key

OVERTAKES_MAX = 256  # named in one record; with more ahead of it, it stands in line
BLOCKERS_MAX = 16  # named for one claim, oldest first: enough to know that it waits, and for whom


@dataclass(frozen=True, slots=True)
class Claim:
    """What a live procedure wants to hold from its grant to its end."""

    procedure: str
    submission: int
    locks: tuple[Lock, ...]
    parent: str | None = None
    overtakes: frozenset[str] = frozenset()
    """Whom it goes before although they were submitted earlier; stored in its record."""


def claim_of(procedure: str, record: ProcedureRecord) -> Claim:
    """What a record claims."""
    overtakes = frozenset(record.overtakes)
    return Claim(procedure, record.submission, claimed(record), record.parent, overtakes)


def claimed(record: ProcedureRecord) -> tuple[Lock, ...]:
    """Its locks. One that is poisoned on the schema side lets go of the placement side: it does not
    stop a failover."""
    locks = record.locks
    if record.poisoned and any(is_schema_side(lock.key) for lock in locks):
        locks = tuple(lock for lock in locks if not is_placement(lock.key))
    return locks


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a claim waits: *by* holds, or waits before it for, the same *key*."""

    key: str
    by: str


Holders = Mapping[str, tuple[Blocked, ...]]
"""Procedure -> what blocks it; none: it holds all its locks."""


def holders(claims: Iterable[Claim]) -> Holders:
    """Every claim, with what blocks it."""
    table = LockTable()
    for claim in sorted(claims, key=lambda claim: claim.submission):
        table.add(claim)
    return {procedure: table.blocked(procedure) for procedure in table.claims}


@dataclass(slots=True)
class _Line:
    """Everybody who holds or wants one key, in order; the second names the exclusive ones."""

    everybody: dict[str, LockMode] = field(default_factory=dict)
    exclusive: dict[str, LockMode] = field(default_factory=dict)

    def conflicting(self, mode: LockMode) -> Mapping[str, LockMode]:
        return self.everybody if mode is LockMode.EXCLUSIVE else self.exclusive


@dataclass(slots=True)
class LockTable:
    """`holders`, kept while claims come and go: a change looks only at those whom it concerns.

    Claims are added in order of submission. One that turns up late stands behind all others: who
    runs already keeps what it holds.
    """

    claims: dict[str, Claim] = field(default_factory=dict)
    _lines: dict[str, _Line] = field(default_factory=dict)
    _place: dict[str, int] = field(default_factory=dict)
    _blocked: dict[str, tuple[Blocked, ...]] = field(default_factory=dict)
    _waiters: dict[str, set[str]] = field(default_factory=dict)
    """Procedure -> those that name it as a reason to wait."""
    _overtakers: dict[str, set[str]] = field(default_factory=dict)
    _children: dict[str, set[str]] = field(default_factory=dict)
    _added: int = 0

    def blocked(self, procedure: str) -> tuple[Blocked, ...]:
        return self._blocked[procedure]

    def add(self, claim: Claim) -> frozenset[str]:
        """The procedures whose reasons to wait are other than before, *claim*'s among them."""
        procedure = claim.procedure
        assert procedure not in self.claims
        self._added += 1
        self.claims[procedure], self._place[procedure] = claim, self._added
        for lock in claim.locks:
            line = self._lines.setdefault(lock.key, _Line())
            line.everybody[procedure] = lock.mode
            if lock.mode is LockMode.EXCLUSIVE:
                line.exclusive[procedure] = lock.mode
        for elder in claim.overtakes:
            self._overtakers.setdefault(elder, set()).add(procedure)
        if claim.parent is not None:
            self._children.setdefault(claim.parent, set()).add(procedure)
        concerned = {*claim.overtakes, *self._children.get(procedure, ())}
        return self._look_again([procedure, *concerned]) | {procedure}

    def remove(self, procedure: str) -> frozenset[str]:
        """As `add`, of those that are left."""
        claim = self.claims.pop(procedure)
        del self._place[procedure]
        for lock in claim.locks:
            line = self._lines[lock.key]
            del line.everybody[procedure]
            line.exclusive.pop(procedure, None)
            if not line.everybody:
                del self._lines[lock.key]
        for elder in claim.overtakes:
            _drop(self._overtakers, elder, procedure)
        if claim.parent is not None:
            _drop(self._children, claim.parent, procedure)
        self._name_reasons(procedure, ())
        del self._blocked[procedure]
        waiters = self._waiters.pop(procedure, set())
        return self._look_again([*waiters, *self._children.get(procedure, ())])

    def overtaken_by(
        self, locks: tuple[Lock, ...], arriving: Mapping[str, tuple[Lock, ...]]
    ) -> frozenset[str]:
        """Whom a new claim on *locks* goes before: nobody, unless it wants placement locks alone;
        else those that wait for a schema lock, and those *arriving* that may have to."""
        if any(is_schema_side(lock.key) for lock in locks):
            return frozenset()
        found = {
            other
            for lock in locks
            if is_placement(lock.key)
            for other in self._line(lock.key).conflicting(lock.mode)
            if any(is_schema_side(one.key) for one in self._blocked[other])
        }
        found |= {other for other, its in arriving.items() if _takes_both_sides(its, locks)}
        return frozenset(found) if len(found) <= OVERTAKES_MAX else frozenset()

    def conflicts(self, locks: Iterable[Lock]) -> tuple[tuple[str, str], ...]:
        """Who holds, or waits for, what a new claim on *locks* could not share with it, and which
        key: (procedure, key), oldest procedure first."""
        found = [
            (self.claims[other].submission, place, other, lock.key)
            for place, lock in enumerate(locks)
            for other in self._line(lock.key).conflicting(lock.mode)
        ]
        return tuple((procedure, key) for _, _, procedure, key in sorted(found))

    def line(self, key: str) -> tuple[tuple[Claim, LockMode], ...]:
        """Everybody who holds or wants *key*, in order."""
        everybody = self._line(key).everybody
        return tuple((self.claims[one], mode) for one, mode in everybody.items())

    def keys(self) -> tuple[str, ...]:
        return tuple(sorted(self._lines))

    def _line(self, key: str) -> _Line:
        return self._lines.get(key) or _Line()

    def _look_again(self, concerned: Iterable[str]) -> frozenset[str]:
        changed: set[str] = set()
        left = [one for one in concerned if one in self.claims]
        while left:
            procedure = left.pop()
            new = tuple(self._reasons(self.claims[procedure]))
            if new != self._blocked.get(procedure):
                self._name_reasons(procedure, new)
                changed.add(procedure)
                left += self._children.get(procedure, ())
        return frozenset(changed)

    def _name_reasons(self, procedure: str, reasons: tuple[Blocked, ...]) -> None:
        for old in self._blocked.get(procedure, ()):
            _drop(self._waiters, old.by, procedure)
        self._blocked[procedure] = reasons
        for new in reasons:
            self._waiters.setdefault(new.by, set()).add(procedure)

    def _reasons(self, claim: Claim) -> list[Blocked]:
        elders = self._elders(claim)
        family = {elder.procedure for elder in elders}
        found: list[Blocked] = []
        for lock in claim.locks:
            cover = next((elder for elder in elders if _covers(elder, lock)), None)
            for other in self._ahead(claim, lock):
                if other in family:
                    continue
                if cover is not None and cover not in self._elders(self.claims[other]):
                    continue
                found.append(Blocked(lock.key, other))
                if len(found) == BLOCKERS_MAX:
                    return found
            if cover is not None and self._blocked[cover.procedure]:
                found.append(Blocked(lock.key, cover.procedure))
        return found

    def _ahead(self, claim: Claim, lock: Lock) -> Iterator[str]:
        """Those that go before *claim* on this key, and cannot share it."""
        conflicting = self._line(lock.key).conflicting(lock.mode)
        place = self._place[claim.procedure]
        for other in conflicting:
            if self._place[other] >= place:
                break
            if other not in claim.overtakes:
                yield other
        overtakers = self._overtakers.get(claim.procedure, ())
        later = [one for one in overtakers if one in conflicting and self._place[one] > place]
        yield from sorted(later, key=self._place.__getitem__)

    def _elders(self, claim: Claim) -> tuple[Claim, ...]:
        """Its parent, the parent's parent, ...: a child runs under their locks."""
        found: list[Claim] = []
        parent = claim.parent
        while parent is not None and parent in self.claims:
            found.append(self.claims[parent])
            parent = self.claims[parent].parent
        return tuple(found)


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


def _covers(elder: Claim, lock: Lock) -> bool:
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
