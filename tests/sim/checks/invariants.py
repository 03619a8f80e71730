"""Conditions that hold at every moment, checked from outside: fences, the catalog, leases.

What is wrong goes to a list of the world, never into the code under test, which may swallow it.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dataplane.datanode.regions.slot import Slot
from dataplane.datanode.service import DatanodeService
from keys.model.log import CatalogUpdateKey
from keys.model.records import ProcedureHistory, ProcedureHistoryKey, ProcedureKey
from keys.store.kv import Request, TxnAnswer, Watched
from keys.store.memory import MemoryKv
from keys.value import decode
from metasrv_base.errors import Unavailable
from tests.procedures.harness.agree import Agreement
from tests.sim.checks.staged_updates import StagedUpdates
from tests.sim.cluster.nodes import Datanode
from tests.sim.cluster.servers import Metasrv
from tests.sim.cluster.store import SEAT, is_unfenced
from tests.sim.loop import SimLoop


@dataclass
class StoreGhost:
    """Implements tests.sim.cluster.store.Ghost: looks at every transaction as it is applied, and
    at the keys after every revision.
    """

    loop: SimLoop
    kv: MemoryKv
    sometimes: Counter[str]
    wrong: Callable[[str], None]
    agreement: Agreement = field(default_factory=Agreement)
    revision: int = 0
    """Up to which the keys have been judged."""
    updates: dict[int, bytes] = field(default_factory=dict)
    """The log, as it was written, by version, with entries that are in parts; what is compacted
    stays."""
    revisions: dict[int, int] = field(default_factory=dict)
    """The revision of every version."""
    listeners: list[Callable[[Watched], None]] = field(default_factory=list)
    """Called with every revision as it is written."""
    staged: StagedUpdates = field(default_factory=StagedUpdates)
    _in_doubt: set[Request] = field(default_factory=set)

    def applied(self, host: str, request: Request, answer: TxnAnswer) -> None:
        """G18: who writes compares its seat, and it is the seat that stands."""
        if request.writes and not is_unfenced(request):
            self._judge(host, request, answer)
        self.look()

    def told_nothing(self, host: str, request: Request) -> None:
        if request.writes:
            self._in_doubt.add(request)

    def _judge(self, host: str, request: Request, answer: TxnAnswer) -> None:
        fences = [one.mod_revision for one in request.compares if one.key == SEAT]
        held = self.kv._store.get(SEAT)
        is_deposed = held is None or fences != [held.mod_revision]
        if is_deposed:
            said = "taken" if answer.succeeded else "refused"
            self.sometimes[f"a write of a deposed leader was {said}"] += 1
        if is_deposed and answer.succeeded:
            self.wrong(f"fence: {host} wrote under {fences}, the seat is {held}")
        if not is_deposed and request in self._in_doubt:
            self._in_doubt.remove(request)
            was = "had not been done" if answer.succeeded else "had been done"
            self.sometimes[f"a write in doubt {was}"] += 1

    def look(self) -> None:
        """Judges every revision that has not been judged."""
        start, end = ProcedureHistoryKey.under()
        log_start, log_end = CatalogUpdateKey.under()
        for entry in self.kv._store.log_from(max(self.revision + 1, self.kv._store.compacted + 1)):
            self.revision = entry.revision
            self.loop.trace("revision", entry.revision, sorted(event.key for event in entry.events))
            for listener in self.listeners:
                listener(entry)
            before = len(self.agreement.wrong)
            self.agreement.move(entry.revision, entry.events)
            for text in self.agreement.wrong[before:]:
                self.wrong(f"catalog: {text}")
            for event in entry.events:
                self.staged.note(event)
                if log_start <= event.key < log_end and event.value is not None:
                    version = CatalogUpdateKey.parse(event.key).version
                    self.updates[version] = self.staged.whole(event.key.decode(), event.value)
                    self.revisions[version] = entry.revision
                if start <= event.key < end and event.value is not None:
                    history = decode(ProcedureHistory, event.value, key=event.key.decode())
                    self.sometimes[f"a procedure ended: {history.outcome}"] += 1
                    self.sometimes[f"a procedure ended: {history.last.kind}"] += 1


@dataclass
class LeaseGhost:
    """G31: at any moment at most one node would serve a region: under its lease, or where it has
    copies under their promises (G52)."""

    sometimes: Counter[str]
    wrong: Callable[[str], None]
    is_judged: bool
    """False: clocks run further apart than leases allow for, and only rows are safe."""

    def look(self, nodes: Iterable[Datanode]) -> None:
        holders: dict[int, list[str]] = {}
        for node in nodes:
            if not node.is_up or node.service is None:
                continue
            for slot in node.service.regions:
                if slot.owner is None or slot.owner.stopped_by is not None:
                    continue
                if _serves(node.service, slot):
                    holders.setdefault(slot.region_id, []).append(f"{node.name} at {slot.epoch}")
                else:
                    self.sometimes["a node that stopped by its own clock"] += 1
        for region, found in holders.items():
            if len(found) > 1:
                self.sometimes["two nodes with a lease of one region"] += 1
                if self.is_judged:
                    self.wrong(f"lease: region {region} is held by {found}")


def _serves(service: DatanodeService, slot: Slot) -> bool:
    try:
        service.regions.must_have_lease(slot)
    except Unavailable:
        return False
    return True


@dataclass
class KnownGhost:
    """G21: a leader that admits procedures knows each that is stored."""

    kv: MemoryKv
    wrong: Callable[[str], None]
    _told: set[int] = field(default_factory=set)
    """Terms that have been told of."""

    def look(self, servers: Iterable[Metasrv]) -> None:
        seat = self.kv._store.get(SEAT)
        for server in servers:
            term = server.state.term if server.is_up and server.state is not None else None
            if term is None or not term.ready.is_set() or term.number in self._told:
                continue
            if seat is None or seat.mod_revision != term.number:
                continue
            start, end = ProcedureKey.under()
            found = self.kv._store.scan(start, end)
            stored = {item.key.removeprefix(start).decode() for item in found}
            floor = term.manager._floor
            unknown = stored - floor.entries.keys() - floor.arriving.keys()
            if unknown:
                self._told.add(term.number)
                self.wrong(f"known: {server.name} has {len(unknown)} of {len(stored)} not taken up")


def look_at_leaders(servers: Iterable[Metasrv], sometimes: Counter[str]) -> None:
    leading = [server for server in servers if server.is_up and server.state is not None]
    if sum(server.state is not None and server.state.term is not None for server in leading) > 1:
        sometimes["two servers that believe they lead"] += 1
