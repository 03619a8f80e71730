"""Suites that plant bugs, and the bugs that rule 2 of the harness names (docs/guarantees.md)."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suite:
    """Bugs that one test hunts, by the names that stand in the tests."""

    about: str
    """Where the suite plants bugs, and the check that finds them."""
    test: str
    """`path::test`, or the path alone where each bug has a test of its own."""
    names: tuple[str, ...]
    """`path::NAME` of a mapping or list that is keyed by them; the test itself, if its parameters
    are; or else the names of tests in that path."""


SUITES: Mapping[str, Suite] = {
    "lives": Suite(
        "Between a server and the store, its nodes or its kinds; found by lives of a procedure that"
        " are crashed, deposed or left in doubt at each of its calls.",
        "tests/crash/test_planted_bugs.py"
        "::test_given_a_planted_bug_when_lives_are_tried_then_its_check_finds_it",
        ("tests/crash/test_planted_bugs.py::PLANTED",),
    ),
    "cancels": Suite(
        "In the kinds and the rules of control; found by a cancel before and behind each commit.",
        "tests/crash/test_cancel_matrix.py",
        (
            "test_given_a_cancel_that_is_taken_behind_the_commit_then_the_matrix_finds_it",
            "test_given_a_kind_that_forgets_to_undo_a_step_then_the_matrix_finds_it",
        ),
    ),
    "batches": Suite(
        "In the committer; found by what clients were told, held against the store's history.",
        "tests/keys/commit/test_committer_histories.py"
        "::test_given_a_planted_bug_when_cases_are_drawn_then_it_is_found",
        ("tests/keys/commit/test_committer_histories.py::PLANTED",),
    ),
    "copies under changes": Suite(
        "In failovers, in changes of a set and in a leader that asks for them; found by drawn lives"
        " in which a copy of a set lacks an acknowledged row.",
        "tests/sim/plots/copies/test_copied.py"
        "::test_given_a_planted_bug_when_lives_are_drawn_then_one_of_them_finds_it",
        ("tests/sim/plots/copies/test_copied.py::PLANTED",),
    ),
    "fetched files": Suite(
        "In how a copy fetches the files of its leader; found by copies that lose power at each"
        " operation of a fetch, and by bytes that are changed on their way.",
        "tests/dataplane/region/fetching/test_file_fetch_crash.py"
        "::test_given_a_planted_bug_when_a_copy_fetches_then_it_is_found",
        ("tests/dataplane/region/fetching/test_file_fetch_crash.py::PLANTED",),
    ),
    "changes in a log": Suite(
        "In how a copy and a promoted copy make changes of the schema; found by lives of a copy"
        " that end before any operation on its files.",
        "tests/dataplane/region/following/test_copy_region_changes_planted.py"
        "::test_given_a_planted_bug_when_copies_die_among_changes_then_it_is_found",
        ("tests/dataplane/region/following/test_copy_region_changes_planted.py::PLANTED",),
    ),
    "files in a log": Suite(
        "In how copies have the files that a record names; found by lives of a copy among ingests"
        " that end before any operation on its files.",
        "tests/dataplane/region/fetching/test_logged_fetch_crash.py"
        "::test_given_a_planted_bug_when_copies_die_among_ingests_then_it_is_found",
        ("tests/dataplane/region/fetching/test_logged_fetch_crash.py::PLANTED",),
    ),
    "tenants": Suite(
        "In the reservations of tenants; found by tables beyond a limit.",
        "tests/procedures/scheduling/test_tenant_limits_leaders.py"
        "::test_given_a_planted_bug_of_limits_when_many_ask_then_there_are_too_many_tables",
        ("tests/procedures/scheduling/test_tenant_limits_leaders.py::PLANTED",),
    ),
    "apply": Suite(
        "In the plan of declared files, and in who compares it; found by what stands after a plan"
        " that was looked at.",
        "tests/metasrv/service/apply/test_run_apply_planted.py"
        "::test_given_a_planted_bug_of_apply_when_its_check_runs_then_it_is_found",
        ("tests/metasrv/service/apply/test_run_apply_planted.py::PLANTED",),
    ),
    "large": Suite(
        "In how a version too large for one transaction is written; found by leaders that die at"
        " each of its calls.",
        "tests/keys/catalog/large/test_unfinished_planted.py"
        "::test_given_a_planted_bug_when_leaders_die_anywhere_then_a_life_finds_it",
        ("tests/keys/catalog/large/test_unfinished_planted.py::PLANTED",),
    ),
    "copies": Suite(
        "In who reads and writes while the keys of a large version are written; found by failovers"
        " and renames that come meanwhile, at a leader's death.",
        "tests/crash/test_copy_failovers.py"
        "::test_given_a_planted_bug_when_a_leader_dies_at_a_chunk_then_a_life_finds_it",
        ("tests/crash/test_copy_failovers.py::PLANTED",),
    ),
    "log": Suite(
        "In the catalog log, its snapshots and its compaction; found by a server that follows while"
        " leaders change, snapshot and cut.",
        "tests/keys/catalog/log/test_update_log_planted.py"
        "::test_given_a_planted_bug_when_logs_are_cut_under_a_follower_then_a_life_finds_it",
        ("tests/keys/catalog/log/test_update_log_planted.py::PLANTED",),
    ),
    "revisions": Suite(
        "In the compaction of etcd; found by readers that pinned a revision, while leaders compact"
        " late.",
        "tests/keys/catalog/log/test_revision_pins.py"
        "::test_given_a_planted_bug_of_compaction_when_readers_live_then_one_loses_its_revision",
        ("tests/keys/catalog/log/test_revision_pins.py::PLANTED",),
    ),
    "watch": Suite(
        "In the watch of etcd; found by streams that break anywhere.",
        "tests/keys/store/test_etcd_watch_resumed.py",
        ("test_given_a_watch_resumed_at_rev_when_streams_break_then_a_repeat_finds_it",),
    ),
    "catalog": Suite(
        "In a server's catalog; found by a watch that is compacted under it.",
        "tests/keys/catalog/test_follower.py",
        ("test_given_no_load_behind_a_compaction_when_watched_then_it_never_gets_there",),
    ),
    "restores": Suite(
        "In what a restore raises; found by numbers that are given out again.",
        "tests/metasrv/restore/test_restored_values.py"
        "::test_given_a_planted_bug_when_restored_then_a_number_is_given_again",
        ("tests/metasrv/restore/test_restored_values.py::PLANTED",),
    ),
    "places": Suite(
        "In where a restored region opens; found by the rules of a placement.",
        "tests/metasrv/restore/test_placement.py"
        "::test_given_a_planted_bug_when_regions_are_placed_then_a_rule_is_broken",
        ("tests/metasrv/restore/test_placement.py::PLANTED",),
    ),
    "filters": Suite(
        "In where a failover takes a region; found by new leaders that its node filter excludes.",
        "tests/procedures/kinds/failover/test_failover_plan_planted.py"
        "::test_given_a_planted_bug_when_failed_over_then_a_region_is_outside_its_filter",
        ("tests/procedures/kinds/failover/test_failover_plan_planted.py::PLANTED",),
    ),
    "pages": Suite(
        "In what goes on from page to page; found by what whole lists, ranges and tables hold.",
        "tests/metasrv/service/test_pages_planted.py"
        "::test_given_a_planted_page_end_when_pages_are_put_together_then_they_are_not_the_whole",
        ("tests/metasrv/service/test_pages_planted.py::PLANTED",),
    ),
    "events": Suite(
        "In the stream of the catalog's events; found by watchers that come and go, against what"
        " direct reads show.",
        "tests/metasrv/service/catalog/test_event_stream_planted.py"
        "::test_given_a_planted_bug_when_watchers_come_and_go_then_reads_show_other_tables",
        ("tests/metasrv/service/catalog/test_event_stream_planted.py::PLANTED",),
    ),
    "old events": Suite(
        "In the events of versions that the log alone holds; found by watchers that resume"
        " anywhere, against what direct reads show.",
        "tests/metasrv/service/past/test_catch_up.py"
        "::test_given_a_planted_bug_when_resumed_anywhere_then_it_differs_from_reads",
        ("tests/metasrv/service/past/test_catch_up.py::PLANTED",),
    ),
    "leases": Suite(
        "In the arithmetic of region leases; found by two holders at one instant.",
        "tests/metasrv/nodes/test_lease_table_planted.py"
        "::test_given_a_planted_bug_when_leases_are_granted_then_an_overlap_finds_it",
        ("tests/metasrv/nodes/test_lease_table_planted.py::",),
    ),
    "seat": Suite(
        "In the lease of the leader; found by a server that leads without it.",
        "tests/metasrv/nodes/test_lease_table_planted.py",
        ("test_given_a_planted_bug_when_renewing_then_a_server_believes_too_long",),
    ),
    "holders": Suite(
        "In schema leases, the leader's book or the holder's; found by a step that goes on while an"
        " older version is used.",
        "tests/metasrv/holders/test_holder_registry_planted.py::test_given_a_planted_bug_then_a_step_goes_on_too_early",
        ("tests/metasrv/holders/test_holder_registry_planted.py::",),
    ),
    "takeovers": Suite(
        "In a region; found by another leader, or by power loss, before any operation on files.",
        "tests/dataplane/region/faults/test_planted_bugs.py"
        "::test_given_a_planted_bug_when_enumerated_then_it_is_caught",
        ("tests/dataplane/region/faults/test_planted_bugs.py::PLANTED",),
    ),
    "merges": Suite(
        "In a merge of a region's files; found by the same.",
        "tests/dataplane/region/compaction/test_compaction_crash.py"
        "::test_given_a_planted_bug_in_a_merge_when_enumerated_then_it_is_caught",
        ("tests/dataplane/region/compaction/test_compaction_crash.py::PLANTED",),
    ),
    "reorgs": Suite(
        "In what a change of schema asks of a region; found by any writers beside a job.",
        "tests/dataplane/region/faults/test_planted_reorg.py"
        "::test_given_a_planted_bug_when_histories_are_drawn_then_one_finds_it",
        ("tests/dataplane/region/faults/test_planted_reorg.py::PLANTED",),
    ),
    "values": Suite(
        "In a region's scans of values alone; found by the same scan with keys.",
        "tests/dataplane/region/reads/test_value_scan.py"
        "::test_given_a_planted_bug_of_value_scans_when_compared_then_it_is_found",
        ("tests/dataplane/region/reads/test_value_scan.py::PLANTED",),
    ),
    "statements": Suite(
        "In statements of a frontend; found by the case that each is about.",
        "tests/dataplane/frontend/statements/test_statements_planted.py"
        "::test_given_a_planted_bug_of_statements_when_its_case_is_lived_then_it_is_found",
        ("tests/dataplane/frontend/statements/test_statements_planted.py::PLANTED",),
    ),
    "matrix": Suite(
        "In the way of an index; found by rows that are written in any stage and changed in any"
        " later one.",
        "tests/dataplane/frontend/planning/test_entries_matrix.py"
        "::test_given_a_way_that_leaves_something_out_then_the_matrix_says_which_row_is_wrong",
        ("tests/dataplane/frontend/planning/test_entries_matrix.py::",),
    ),
    "types": Suite(
        "In statements while a type changes; found by the same.",
        "tests/dataplane/frontend/planning/test_mirrors_matrix.py"
        "::test_given_a_planted_mistake_when_the_matrix_is_lived_then_it_names_the_row",
        ("tests/dataplane/frontend/planning/test_mirrors_matrix.py::PLANTED",),
    ),
    "protocol": Suite(
        "Variants of the protocol of online change that research has published, each with its"
        " outcome; explored state by state. Some are to hold, and do.",
        "tests/metasrv_base/elements/proof/test_protocol.py"
        "::test_given_a_variant_when_explored_then_it_is_found_out_or_it_holds",
        ("tests/metasrv_base/elements/proof/known_mutants.py::KNOWN",),
    ),
    "views of copies": Suite(
        "In the views of a leader and of its copies; found by random schedules with late, lost and"
        " repeated messages, restarts and lost disks.",
        "tests/dataplane/region/copies/test_leader_view_schedules.py"
        "::test_given_a_rule_removed_when_schedules_are_drawn_then_its_fault_is_found",
        ("tests/dataplane/region/copies/planted.py::PLANTED",),
    ),
    "silent copies": Suite(
        "In the clock and the view by which a leader judges that a copy is silent; found by copies"
        " that leave the set, or stay in it, against the rule.",
        "tests/dataplane/region/copies/test_leader_view_silence.py"
        "::test_given_a_planted_bug_of_silence_when_schedules_are_drawn_then_its_fault_is_found",
        ("tests/dataplane/region/copies/test_leader_view_silence.py::PLANTED",),
    ),
    "promises": Suite(
        "In the promises under which a leader with copies reads; found by stale reads in random"
        " schedules, with clocks that differ by 5 %.",
        "tests/dataplane/region/copies/test_promises_schedules.py"
        "::test_given_a_planted_bug_of_promises_when_schedules_are_drawn_then_a_read_is_stale",
        ("tests/dataplane/region/copies/test_promises_schedules.py::PLANTED",),
    ),
    "reads of copies": Suite(
        "In the positions by which copies know the age of their rows; found by reads of copies in"
        " random schedules, with clocks that differ by 5 %.",
        "tests/dataplane/region/copies/test_staleness.py"
        "::test_given_a_planted_bug_when_copies_are_read_then_a_row_is_missing_for_too_long",
        ("tests/dataplane/region/copies/test_staleness.py::PLANTED",),
    ),
    "region copies": Suite(
        "In the model of the protocol of regions with copies; found by every order of events within"
        " small bounds.",
        "tests/model/copies/test_rules.py"
        "::test_given_a_rule_removed_when_explored_then_its_fault_is_found",
        ("tests/model/copies/mutants.py::MUTANTS",),
    ),
    "orphans": Suite(
        "In how folders in quarantine are judged before they are deleted; found by a route that"
        " names one again.",
        "tests/procedures/kinds/orphans/test_remove_orphans_planted.py"
        "::test_given_a_planted_bug_when_a_route_names_a_folder_again_then_its_deletion_is_found",
        ("tests/procedures/kinds/orphans/test_remove_orphans_planted.py::PLANTED",),
    ),
    "seams": Suite(
        "Where one program meets another; found by a fault between the two, which other suites"
        " cannot see because a fake stands for one of them.",
        "tests/conformance/test_planted_seams.py"
        "::test_given_a_planted_bug_of_a_seam_when_its_fault_happens_then_it_is_found",
        ("tests/conformance/test_planted_seams.py::PLANTED",),
    ),
    "graphs": Suite(
        "Variants of our own, of the graphs of elements and of what we added to the protocol.",
        "tests/metasrv_base/elements/proof/test_protocol.py"
        "::test_given_a_variant_when_explored_then_it_is_found_out_or_it_holds",
        ("tests/metasrv_base/elements/proof/own_mutants.py::OURS",),
    ),
    "seeds": Suite(
        "Anywhere in a whole cluster of the simulation; found by its ghosts and its oracle.",
        "tests/sim/test_planted.py"
        "::test_given_planted_mistakes_when_seeds_are_lived_then_each_is_found",
        ("tests/sim/test_planted.py::QUICK",),
    ),
}
HUNTED = (
    "tests/sim/planted/mistakes.py::BUGS",
    "tests/sim/planted/schema_mistakes.py::PATCHES",
    "tests/sim/planted/rare_mistakes.py::PATCHES",
    "tests/sim/planted/copy_mistakes.py::PATCHES",
)
"""Rare bugs of the simulation; `make sim` plants any of them."""

Planted = tuple[str, str]
"""A suite, and the name there; of a suite whose bugs have tests of their own, the test."""
RULE: Mapping[str, tuple[Planted, ...]] = {
    "no fence": (("lives", "no fence"), ("batches", "no fence"), ("seeds", "no fence")),
    "fence by value": (("lives", "fence by value"),),
    "read-set compare skipped": (("lives", "a read set that is not compared"),),
    "split commit": (("lives", "one commit in two"),),
    "ambiguous treated as failed": (
        ("lives", "doubt taken for not done"),
        ("batches", "unknown treated as failed"),
    ),
    "ambiguous retried": (("lives", "doubt sent again by the client"),),
    "not resumed": (("lives", "not resumed"),),
    "resumed before re-locking": (("lives", "resumed before it was locked again"),),
    "lock released in `finally`": (("lives", "lock released in finally"),),
    "lease counted from receive time": (
        ("leases", "lease counted from receipt"),
        ("holders", "schema lease counted from receipt"),
        ("seat", "test_given_a_planted_bug_when_renewing_then_a_server_believes_too_long"),
    ),
    "wait W skipped after election": (
        ("leases", "wait W skipped after an election"),
        ("holders", "wait skipped after an election"),
    ),
    "watch resumes at rev instead of rev+1": (
        ("watch", "test_given_a_watch_resumed_at_rev_when_streams_break_then_a_repeat_finds_it"),
    ),
    "no relist after compaction": (
        ("catalog", "test_given_no_load_behind_a_compaction_when_watched_then_it_never_gets_there"),
    ),
    "write-only skipped": (
        ("lives", "no write-only"),
        ("matrix", "no write-only"),
        ("graphs", "no write-only"),
    ),
    "backfill overwrites newer": (
        ("reorgs", "backfill overwrites newer"),
        ("matrix", "blind reorg"),
        ("protocol", "blind put, and so put if absent"),
    ),
    "cancel after commit": (
        ("cancels", "test_given_a_cancel_that_is_taken_behind_the_commit_then_the_matrix_finds_it"),
    ),
    "page end off by one": (
        ("pages", "a page of the store ends one too early"),
        ("pages", "a page of a list ends one too late"),
        ("pages", "a page of rows ends one too early"),
    ),
    "look before the append": (("takeovers", "look before the append"),),
    "replay past the seal": (("takeovers", "replayed past the seal"),),
    "floor not in the open order": (("lives", "floor not in the open order"),),
    "pin let go with a batch in flight": (
        ("seeds", "pin let go in flight"),
        ("holders", "pin let go under a running transaction"),
        ("graphs", "a pin is let go with a write on its way"),
    ),
    "learner in the route first": (
        ("views of copies", "a set that grows in the route first"),
        ("region copies", "a set that grows in the route first"),
    ),
    "two members of a commit batch that read each other's writes": (
        ("batches", "two members that read each other's writes"),
    ),
    "holder's registration expires early": (("holders", "holder's registration expires early"),),
    'absence read back taken for "not done"': (("batches", "absence read back is not done"),),
    "tombstone dropped during a reorg": (
        ("reorgs", "tombstone dropped during a reorg"),
        ("graphs", "ingest, a tombstone was merged away"),
    ),
}
"""Bugs that the rule names, in its words and its order."""
