"""Cases that an online schema change must pass, in our own words: 80 cases.

The test that shows a case has its number in the marker `case`, as `online 12`.
"""

from collections.abc import Mapping

from scripts.documents.catalogue import Catalogue

_LEASES = """
1 three idle holders follow a version: all acknowledge it, and the next step follows at once
2 a holder renews its lease and does not follow: the step waits, and names it and its transaction
3 a holder is killed: the step goes on once its lease has ended; the next step does not wait again
4 a holder is frozen for longer than its lease: its own clock stops it, otherwise the region does
5 a version that is not streamed is learned within a part of a lease
6 after a compaction of the store the catalog is loaded again, and no version is skipped
7 a load fails once: it is tried again; until the lease ends: the holder stops and deregisters
8 a holder that starts while a step waits knows the published version before it serves
9 a holder restarts at once: only its newest incarnation is waited for
10 the store elects another leader: no lease of a holder is extended or ended by it
11 a wall clock jumps by an hour: no lease depends on it
12 a load takes longer than a lease and nothing has changed: the lease goes on
13 a reader that missed versions: the updates lead to the same state as a new snapshot
14 an update that is missing or unknown is never skipped
15 a reader that is too far behind gets a new snapshot
16 an acknowledgement is lost, late or repeated: no version goes back, nothing hangs
"""
_TRANSACTIONS = """
17 a transaction ends with the version that it began with; a later one has the next version
18 the version after the next waits until that transaction has ended, or is too old
19 a transaction that is too old ends with an error that asks for a retry; the change goes on
20 a change of one table waits for no transaction on another
21 a transaction that touched no table of the change is not waited for
22 readers do not wait while a change waits
"""
_INDEXES = """
23 a row of each state, seen from each state: its entry exists if it was written under write-only
24 written under write-only, deleted under delete-only: no entry remains
25 an indexed column changed under delete-only: the old entry is removed
26 another column changed of a row that the reorg has not reached: its entry exists in the end
27 a row deleted between the reorg's read and its write: no entry without a row
28 deleted and written again in between: only the new entry
29 changed and changed back in between: one entry, decided by its version
30 a hot row: the reorg goes on with others, and tries it a bounded number of times
31 a reorg that is killed anywhere resumes at its checkpoint, and omits nothing
32 an empty table: nothing to fill, and every state is still published
33 the leader is killed in each state: the next one finishes, and waits again
34 a leader that wakes up after its successor's undo: its write is refused
35 two indexes of one name at once: one is made
36 a duplicate that is detected late is in the history with its key
"""
_UNIQUE = """
37 an existing duplicate: the change is undone, and no entry remains
38 a duplicate written under write-only through another frontend: the second is refused
39 a duplicate that is removed before the reorg reaches it: no error
40 of two duplicates one is deleted: the other has its entry
41 two rows exchange their values in one statement
42 null is allowed in any number of rows
43 two equal rows in one statement under write-only: refused
"""
_COLUMNS = """
44 an insert that names no columns while one is being added: as before
45 an upsert while a column is being added: its default, never null where null is not allowed
46 an older row reads as the origin default; one that was changed since as it was changed
47 a default that is an expression is evaluated once
48 a required column without a default is dropped: inserts with and without it both work
49 a column is dropped and another of its name added: a new id, and no old value
50 a column is dropped with the index over it: both are removed in one version
51 a lossy change of type: a value that does not fit undoes it, and the column is as it was
52 a null that is written while a column becomes required: refused, or the change is undone
53 a column or table is renamed while its old name is in use: a definite error
"""
_CONSTRAINTS = """
54 an old row violates a check: undone; a new one is refused from write-only on
55 a check is dropped: it is enforced until write-only is left, and no longer
56 a foreign key
"""
_TABLES = """
57 one table is created through two servers at once: one is made
58 a crash after the table exists and before the history: not created twice, and in the history
59 a crash after the history and before the queue: nothing is done twice
60 placement takes too long, or succeeds twice: no region is left over
61 a table that is not public: no statement reaches it
62 a table is dropped while an index is made: one after the other, and nothing is left
63 dropped and created again under load: no old row is seen
64 truncated under load: older rows are gone, later rows stay
65 two tables exchange their names: no version without either
66 a schema of ten thousand tables is dropped in bounded transactions
"""
_JOBS = """
67 a cancel in each state of each kind: as if it had never begun
68 a cancel and the last publication at once: exactly one of them happens
69 paused in each state, all restarted, resumed: it finishes
70 a paused reorg writes nothing after some seconds, and resumes at its checkpoint
71 rate and batch changed while it runs: from the next batch on
72 repeated errors: a limit, then undone; an undo that fails is counted
73 the history is kept, can be queried by table and time, and has the statement
74 dependent changes keep their order; others run beside them; a waiting one is not overtaken
75 several changes in one statement: the last one fails, and all are undone
"""
_WHOLE = """
76 random changes, rows and faults against a model: no difference at the end
77 every graph with two servers, two rows and three transactions
78 another version of the program takes over changes in each state
79 a million tables: loading, memory, and changes per second
80 the store is away for a minute: statements stop or are refused, and all resumes by itself
"""
_SECTIONS: Mapping[str, str] = {
    "Leases and versions": _LEASES,
    "Transactions": _TRANSACTIONS,
    "Indexes": _INDEXES,
    "Unique": _UNIQUE,
    "Columns": _COLUMNS,
    "Constraints": _CONSTRAINTS,
    "Tables": _TABLES,
    "Changes under way": _JOBS,
    "Whole system": _WHOLE,
}
_WHY_NOT: Mapping[int, str] = {
    56: "there are no foreign keys",
}
_IN_PART: Mapping[int, str] = {
    48: "the states of the column, not statements of two versions side by side",
    74: "waits are a pure function of claims; they are not shown beside running changes",
}

_HEADER = """\
# Cases of online schema change

Events that an online schema change must survive while statements run, the result of each, and the
tests that show it. The states (delete-only, write-only, public) are those of
[elements.md](elements.md); *holder*, *reorg* and *floor* are in the [glossary](glossary.md).

Shown by a test: {shown} of {total}, {part} of them in part. Not built: {missing}. Not applicable to
this design: {other}. Each such row gives its reason.

Generated by `make generate` from the marker `case` of the tests and from
`scripts/documents/online_cases.py`; do not edit.
"""
ONLINE = Catalogue(
    "online", "docs/online-change.md", _HEADER, _SECTIONS, _WHY_NOT, in_part=_IN_PART
)
