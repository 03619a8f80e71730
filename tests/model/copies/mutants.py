"""Protocols with one rule off, each with bounds within which its fault is the nearest."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tests.model.copies.explore import Exploration, explore
from tests.model.copies.faults import CopyFault
from tests.model.copies.rules import PROTOCOL
from tests.model.copies.world import Bounds, Setting

LOST, THIN, STALE = CopyFault.LOST, CopyFault.THIN, CopyFault.STALE
EXPOSED, UNCUTTABLE = CopyFault.EXPOSED, CopyFault.UNCUTTABLE

PAIR = Bounds(2)
THREE = Bounds(3)
FLUSHED = Bounds(3, flushes=True)
READ = Bounds(2, versions=2, reads=True)
READ_OF_THREE = Bounds(3, versions=2, reads=True)
GROWING = Bounds(1, 1)
DISKS = Bounds(2, losses=1, min_in_sync=2)
JOINING = Bounds(1, 1, epochs=1, losses=1, min_in_sync=2, shrinks=False)
MOVED = replace(DISKS, learners=1, epochs=1, versions=3, moves=True)
SHRUNK = Bounds(2, min_in_sync=2)
LEASED = Bounds(2, 1, min_in_sync=2, reads=True, asks=False)
PROMOTED_TWICE = Bounds(2, 1, epochs=3, reads=True, shrinks=False)


@dataclass(frozen=True, slots=True)
class Mutant:
    rule: str
    """The field of `Rules` that is off."""
    bounds: Bounds
    fault: CopyFault

    def explored(self) -> Exploration:
        """Looks for that fault alone: others may be nearer."""
        rules = replace(PROTOCOL, **{self.rule: False})
        return explore(Setting(self.bounds, rules), {self.fault})


MUTANTS: Mapping[str, Mutant] = {
    "acknowledged before every copy has it": Mutant("acks_after_all", PAIR, LOST),
    "readable before every copy has it": Mutant("reads_below_commit", PAIR, EXPOSED),
    "flushed before every copy has it": Mutant("flushes_below_commit", FLUSHED, UNCUTTABLE),
    "an ingest acknowledged without its files": Mutant(
        "files_before_ack", Bounds(2, ingests=True), LOST
    ),
    "a copy takes records beyond its budget": Mutant(
        "refuses_over_budget", Bounds(2, writes=2, budget=1), CopyFault.OVER_BUDGET
    ),
    "acknowledged on fewer disks than the minimum": Mutant("min_in_sync", DISKS, THIN),
    "a minimum that is judged at the order alone": Mutant("judges_minimum_again", DISKS, THIN),
    "a learner counted": Mutant("counts_in_sync_alone", DISKS, THIN),
    "a copy counted that was asked to join": Mutant(
        "counts_named_alone", JOINING, CopyFault.STRANDED
    ),
    "a copy that left below the minimum forgotten": Mutant(
        "marks_eligible", replace(DISKS, epochs=1), CopyFault.STRANDED
    ),
    "eligible before the opening is common": Mutant(
        "marks_after_opening", Bounds(3, min_in_sync=3), CopyFault.UNREADABLE
    ),
    "a common position that goes on without eligible copies": Mutant(
        "freezes_common", SHRUNK, EXPOSED
    ),
    "eligible when others have joined": Mutant(
        "clears_at_minimum", Bounds(2, 1, epochs=1, min_in_sync=2), LOST
    ),
    "eligible under another leader": Mutant("clears_at_epoch", SHRUNK, EXPOSED),
    "an eligible copy that waits for no lease": Mutant("outwaits_lease", LEASED, STALE),
    "a set that grows in the route first": Mutant("requires_first", GROWING, LOST),
    "a request that is late taken for failed": Mutant("requires_until_known", GROWING, LOST),
    "a learner added before it has caught up": Mutant("catches_up", GROWING, LOST),
    "caught up with what is known to be common": Mutant(
        "catches_up_to_opening", Bounds(3, 1, versions=3), LOST
    ),
    "a route written without its compare": Mutant("compares_route", Bounds(2, 1), LOST),
    "a set that shrinks at the leader alone": Mutant("shrinks_in_route", PAIR, LOST),
    "a learner promoted": Mutant("promotes_in_sync", GROWING, LOST),
    "an old leader obeyed": Mutant("refuses_old_epochs", THREE, CopyFault.UNEQUAL),
    "a promoted copy that does not cut back": Mutant(
        "cuts_back", Bounds(3, writes=2, epochs=3, versions=3), LOST
    ),
    "a lost root served as an empty one": Mutant("refuses_lost_root", Bounds(3, losses=1), LOST),
    "an acknowledgement of a lost root counted": Mutant(
        "acks_name_root", Bounds(3, losses=1), LOST
    ),
    "removed before added": Mutant("adds_before_removing", MOVED, THIN),
    "a folder deleted before the route": Mutant("route_before_folder", MOVED, THIN),
    "statements known to the leader alone": Mutant(
        "replicates_statements", PAIR, CopyFault.DOUBLED
    ),
    "read without a promise": Mutant("promises", READ, STALE),
    "the promise of one copy": Mutant("promise_of_all", READ_OF_THREE, STALE),
    "no promise of a copy that joins": Mutant(
        "promise_of_growing", replace(GROWING, reads=True), STALE
    ),
    "a promise counted from the answer at the leader": Mutant("counts_from_asking", READ, STALE),
    "a promise without room for drift": Mutant("allows_for_drift", READ, STALE),
    "a clock that stands while suspended": Mutant("counts_suspended", READ, STALE),
    "served before the own promise has ended": Mutant("waits_own_promise", READ, STALE),
    "a set that grows before the promise of its leader has ended": Mutant(
        "grows_after_promise", PROMOTED_TWICE, STALE
    ),
    "a promise forgotten by a restart": Mutant("restart_promises", replace(READ, crashes=1), STALE),
    "checked before it is read": Mutant("checks_after_reading", READ, STALE),
    "read before what was opened is common": Mutant("reads_after_opening", READ_OF_THREE, STALE),
}
