"""One record of each kind for the node's journal, and where its golden files are."""

from pathlib import Path

from dataplane.datanode.orders.journal_format import (
    Dropped,
    Executed,
    Joined,
    JournalError,
    JournalOpened,
    Record,
    TermSeen,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "node"
V1 = GOLDEN / "journal.v1.txt"
REGION = 1024 << 32
RECORDS: list[Record] = [
    JournalOpened(node_id="dn-1"),
    Joined(cluster_id="c1"),
    TermSeen(term=7),
    Executed(region_id=str(REGION), term=7, number=1, op="schema", floor_version=5 << 20),
    Executed(
        region_id=str(REGION + 1),
        term=7,
        number=2,
        op="open",
        error=JournalError(code="stale-epoch", facts={"epoch": 3, "found": 2}),
    ),
    Dropped(region_id=str(REGION + 2)),
]
