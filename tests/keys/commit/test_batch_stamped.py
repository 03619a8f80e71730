"""Tables that are stamped are byte for byte those that the committer would write."""

from benchmarks.service.filled import Filling, create_txn, stamped_tables
from keys.commit.batch import LogHead, PendingTxn, share
from keys.store.kv import Compare

NOW_MS = 1_700_000_000_000


def test_given_a_mould_when_tables_are_stamped_then_they_are_what_the_committer_writes() -> None:
    filling = Filling(tables=9, regions=3)
    line = LogHead(Compare(b"fence", 1), version=7, version_revision=3, at_ms=NOW_MS, submission=1)

    stamped = [set(puts) for puts in stamped_tables(filling, line, NOW_MS)]

    committed = []
    for number in range(filling.tables):
        member = PendingTxn(create_txn(filling, number, NOW_MS), procedure=None)
        one, line = share(line, member, now_ms=0)
        committed.append(set(one.writes))
    assert stamped == committed
