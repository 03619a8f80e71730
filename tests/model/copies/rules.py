"""The rules of regions with copies, a field each: a mutant is a protocol with one of them off."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """docs/protocols.md P3.5, P4.5, P5.8 to P5.12. The protocol keeps every rule."""

    acks_after_all: bool = True
    """A row is acknowledged when every copy that the leader requires has it durably."""
    reads_below_commit: bool = True
    """No row is readable anywhere before every required copy has it durably."""
    flushes_below_commit: bool = True
    """No copy flushes, merges or hands to Spark a record above the position that it knows every
    required copy has."""
    files_before_ack: bool = True
    """A copy acknowledges an ingest, import or adopt record only when the named files are on its
    own disk."""
    refuses_over_budget: bool = True
    """A copy that is over its memory budget takes no more records, which slows the leader."""
    slow_leaves: bool = True
    """A copy that stays over its budget leaves the set, through the route."""
    min_in_sync: bool = True
    """A leader whose set has fewer copies than the minimum neither orders nor acknowledges."""
    judges_minimum_again: bool = True
    """It is judged when a row is acknowledged, and not only when it is ordered."""
    counts_in_sync_alone: bool = True
    """A learner does not count for the minimum."""
    counts_named_alone: bool = True
    """Nor does a copy that was asked to join, before the leader has read that it did."""
    marks_eligible: bool = True
    """A copy that leaves a set which then has fewer than the minimum is eligible: it may be
    promoted in the place of a leader that is alone in its set."""
    marks_after_opening: bool = True
    """Only once all that the leader opened its epoch with is common."""
    freezes_common: bool = True
    """The common position stands still while the leader knows of eligible copies, below the
    minimum: it requires them no more, and they may be promoted."""
    clears_at_minimum: bool = True
    """No copy is eligible any more once the set has the minimum."""
    clears_at_epoch: bool = True
    """Nor at another epoch."""
    outwaits_lease: bool = True
    """An eligible copy opens when the lease of the leader that it replaces has ended."""
    eligible_needs_lease: bool = True
    """A leader that knows of eligible copies serves under its lease too, whoever else has promised.
    Without it the fault is too far away to be found in a test's time."""
    requires_first: bool = True
    """A leader requires a learner before it asks for the route that adds it to the set."""
    requires_until_known: bool = True
    """It goes on requiring it until it knows that this transaction failed."""
    catches_up: bool = True
    """It asks only when the learner has all that every required copy has."""
    catches_up_to_opening: bool = True
    """Also all that the leader opened its epoch with."""
    compares_route: bool = True
    """A transaction on the route compares the version that it was computed from."""
    shrinks_in_route: bool = True
    """A leader requires a copy until it has read a committed route without it."""
    promotes_in_sync: bool = True
    """Only a copy of the set is promoted."""
    removes_leader: bool = True
    """A promotion removes the former leader from the set in its own transaction."""
    refuses_old_epochs: bool = True
    """A copy takes nothing from a leader of an epoch below the highest that it has followed."""
    cuts_back: bool = True
    """A copy cuts its log back to the last position in common with the leader of a higher epoch
    before it counts."""
    refuses_lost_root: bool = True
    """A node whose root is gone neither opens the region nor follows as the copy that it was."""
    acks_name_root: bool = True
    """An acknowledgement of a copy names its root: that of a lost one counts for no other."""
    adds_before_removing: bool = True
    """A copy is removed when as many as the table is to have are in sync without it."""
    route_before_folder: bool = True
    """The folder of a copy is deleted when no route names it any more."""
    replicates_statements: bool = True
    """The log says which statements were done, so a promoted copy knows them."""
    promises: bool = True
    """A leader serves a read only under promises."""
    promise_of_all: bool = True
    """It has a promise of every required copy, and not only of one."""
    promise_of_growing: bool = True
    """A learner that it requires already has promised, too."""
    counts_from_asking: bool = True
    """The leader counts a promise from before it asked, and not from the answer."""
    allows_for_drift: bool = True
    """A copy waits longer than it promised, by the drift of both clocks."""
    counts_suspended: bool = True
    """The clock of a leader goes on while its machine is suspended (CLOCK_BOOTTIME)."""
    waits_own_promise: bool = True
    """A promoted copy serves nothing before its own last promise has ended."""
    grows_after_promise: bool = True
    """A promoted copy asks for no copy to be added before its own promise has ended: that copy has
    promised nothing to the former leader, and may be promoted next."""
    restart_promises: bool = True
    """A copy that starts assumes that it promised just before."""
    checks_after_reading: bool = True
    """A read is checked against the promises after it was computed."""
    reads_after_opening: bool = True
    """A leader reads when every required copy has all that it opened its epoch with."""


PROTOCOL = Rules()
