"""Cases that an online schema change must pass, in our own words: 80 cases.

The test that shows a case bears its number in the marker `case`, as `online 12`.
"""

from collections.abc import Mapping

from scripts.documents.catalogue import Catalogue

_LEASES = """
1 three idle holders follow a version: all tell of it, and the next step follows at once
2 a holder renews its lease and does not follow: the step waits, and names it and its transaction
3 a holder is killed: the step goes on once its lease has ended; the next step does not wait again
4 a holder is frozen for longer than its lease: its own clock stops it, and else the region does
5 a version that is not streamed is known a part of a lease later
6 what the store has compacted is loaded anew, and no version is passed over
7 loading fails once: tried again; until the lease ends: the holder serves no more, and signs off
8 a holder that starts while a step waits knows the published version before it serves
9 a holder restarts at once: only its newest incarnation is waited for
10 the store's own leader changes: no lease of a holder grows or ends by it
11 a wall clock jumps by an hour: no lease is counted on it
12 loading takes longer than a lease and nothing has changed: the lease goes on
13 a reader that missed versions: the updates come to what a new snapshot says
14 an update that is missing or unknown is never passed over
15 a reader that is too far behind is given everything anew
16 an acknowledgement is lost, late or repeated: nothing goes back, nothing hangs
"""
_TRANSACTIONS = """
17 a transaction ends with the version that it began with; one that begins later has the next
18 the version after the next waits until that transaction has ended, or is too old
19 a transaction that is too old ends with an error that says to try again; the change goes on
20 a change of one table waits for no transaction on another
21 a transaction that touched no table of the change is not waited for
22 while a change waits, nobody who reads waits for it
"""
_INDEXES = """
23 a row of each state, seen from each state: its entry is there if it was written under write-only
24 written under write-only, deleted under delete-only: no entry stays
25 an indexed column changed under delete-only: the old entry is gone
26 another column of a row changed that no reorg has reached: its entry is there in the end
27 a row deleted between the reorg's read and its write: no entry without a row
28 deleted and written anew in between: only the new entry
29 changed and changed back in between: one entry, told by its version
30 a hot row: the reorg goes on with others, and tries it a bounded number of times
31 a reorg that is killed anywhere goes on at its checkpoint, and leaves nothing out
32 an empty table: nothing to fill, and every state is published all the same
33 the leader is killed in each state: the next one finishes, and waits again
34 a leader that wakes up after an undo by the next: its write is refused
35 two indexes of one name at once: one is made
36 a duplicate that is found late is in the history with its key
"""
_UNIQUE = """
37 a duplicate that is there already: undone, and no entry is left
38 a duplicate written under write-only through another frontend: the second is refused
39 a duplicate that is removed before the reorg gets there: no fault
40 of two duplicates one is deleted: the other has its entry
41 two rows exchange their values in one statement
42 null as often as one likes
43 two equal rows in one statement under write-only: refused
"""
_COLUMNS = """
44 an insert that names no columns while one is on its way: as before
45 an upsert while a column is on its way: its default, never null where null is not allowed
46 a row from before reads as the origin default; one that was changed since as it was changed
47 a default that is an expression is worked out once
48 a required column without a default is dropped: inserts with and without it both work
49 a column is dropped and another of its name added: a new id, and no old value
50 a column is dropped with the index over it: both leave in one version
51 a type changes with loss: a value that does not fit undoes it, and the column is as it was
52 a null that comes while a column becomes required: refused, or the change is undone
53 a column or table is renamed under who uses its old name: a definite error
"""
_CONSTRAINTS = """
54 an old row violates a check: undone; a new one is refused from write-only on
55 a check is dropped: it holds until write-only is left, and nowhere later
56 a key that refers to another table
"""
_TABLES = """
57 one table is made through two servers at once: one is made
58 a crash after the table stands and before the history: not made twice, and in the history
59 a crash after the history and before the queue: nothing is done twice
60 placing takes too long, or succeeds twice: no region is left over
61 a table that is not public: no statement reaches it
62 a table is dropped while an index is made: one after the other, and nothing is left
63 dropped and made anew under load: no old row is seen
64 truncated under load: rows from before are gone, rows from after stay
65 two tables exchange their names: no moment without either
66 a schema of ten thousand tables is dropped in bounded transactions
"""
_JOBS = """
67 a cancel in each state of each kind: as if it had never begun
68 a cancel and the last publication at once: one of the two happens
69 paused in each state, all restarted, resumed: it finishes
70 a reorg that is paused writes no more within seconds, and goes on at its checkpoint
71 rate and batch changed while it runs: from the next batch on
72 error after error: a limit, then undone; an undo that fails is counted
73 the history is kept, can be asked by table and time, and has the statement
74 changes that depend keep their order; others run beside them; who waits is not overtaken
75 several changes in one statement: the last one fails, and all are undone
"""
_WHOLE = """
76 random changes, rows and faults against a model: nothing differs when all is quiet
77 every graph with two servers, two rows and three transactions
78 another version of the program takes over changes in each state
79 a million tables: loading, memory, and changes each second
80 the store is away for a minute: statements stop or are refused, and all goes on by itself
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
    "The whole": _WHOLE,
}
_WHY_NOT: Mapping[int, str] = {
    56: "there are no keys that refer to another table",
}
_IN_PART: Mapping[int, str] = {
    48: "the states of the column, not statements of two versions side by side",
    74: "what waits is a pure function of claims; it is not shown beside running changes",
}

_HEADER = """\
# Cases of online schema change

Generated by `make generate` from the marker `case` of the tests and from
`scripts/documents/online_cases.py`; do not edit. What a schema change beside running statements
must stand, and which test shows it.

{shown} of {total} cases are shown by a test, {part} of them in part; {missing} are about what is
not built, {other} cannot apply here.
"""
ONLINE = Catalogue(
    "online", "docs/online-change.md", _HEADER, _SECTIONS, _WHY_NOT, in_part=_IN_PART
)
