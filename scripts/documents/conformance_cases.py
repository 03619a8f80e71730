"""Cases that another system's tests state of its procedures, keys and DDL, in our own words.

Number and subject. The test that shows a case has its number in the marker `case`.
"""

from collections.abc import Mapping

from scripts.documents.catalogue import Catalogue

APPLY_MIN = 111

_PROCEDURES = """
1 a submitted procedure is found by its id and can be waited for; an unknown id is not found
2 a manager frees its memory when its term ends
3 a manager that has stopped starts nothing
4 an id that exists already is not submitted a second time
5 a procedure and all its descendants are listed, the root first
6 a filter selects the kinds for which events are recorded
7 one submission is announced exactly once
8 a submission that loses against the end of the term stores nothing and fails
9 a child is announced once, and has the client of its parent
10 a child whose submission fails is stored whole or not at all
11 a record written before a field existed is resumed
12 the client of a procedure is still known after a recovery
13 events are recorded from the installation of their recorder on
14 the end of a term stops the task of a procedure and frees its memory
15 two kinds cannot have one name
16 a new leader takes up a parent and its child, and makes no second child
17 the id of a procedure that has ended is not reused
18 a step that fails is undone in visible states; a programming error is not undone
19 a manager accepts nothing before its term has begun
20 a server that led, was deposed and leads again accepts submissions
21 a procedure that has ended is removed after its retention, and not before
22 a submission beyond the limit is refused, and accepted once there is room
23 a recovered procedure records its recovery, once for each new leader
24 no procedure starts while all are paused
25 a procedure is not lost by a crash between its submission and its first step
26 more stored procedures than may run at once are all resumed
27 a record of an unknown kind is kept, and does not stop the recovery of others
28 each step leaves its record, the last one the history
29 a procedure without state between its steps writes once
30 a step that repeats itself without children is run again at once
31 a parent goes on when its children have ended, and sees the outcome of each
32 the end of a term between two steps leaves the record unchanged
33 the end of a term during a step that fails leaves the record unchanged
34 a permanent error in a step that has nothing to undo ends the procedure
35 a permanent error in a step is undone, and the first error is kept
36 a step with a transient error is run again until it succeeds
37 the retries of a step are visible
38 a child that is retried and then fails leaves the decision to its parent
39 retries are bounded
40 an undo with a transient error is tried again
41 when retries are exhausted, the undo runs once
42 a child that fails can fail its parent, and both are undone completely
43 a poison is cleared by the step that succeeds after it
44 a failure that is undone completely clears the poison
45 a failure that is not undone completely keeps the poison
46 exhausted retries clear a poison that is not needed
47 a poisoned procedure is neither ended nor removed
48 of two procedures that want one key the second waits for the first
49 a child that needs a key of its parent does not deadlock
50 a child whose parent may be undone does not deadlock
51 the pairs of lock modes that exclude each other
52 the undo begins at once after a permanent error
53 progress between two errors resets the count of attempts
54 only a declared resource is poisoned
"""
_STORES = """
55 ids, locks and states have one text form each, without duplicates
56 a key that this program would not have written is not parsed
57 a stored record decodes to the value that was encoded
58 the keys of a procedure while it runs, is undone and has ended
59 a new leader tells running, ended and undone procedures apart
60 a long range is read in pages, in order; an error in between is raised
61 a value above the store's limit is not sent
62 a poison belongs to one procedure, and can be set and cleared twice
63 many share a lock or one holds it; a lock without holders takes no memory
64 a client that waits for a procedure waits through its retries
65 ids rise, are never assigned twice, and survive contention and restarts
66 switches are set, read and unset
67 the compares of a transaction, and the branch that it answers
68 ranges: one key, a prefix, all, a limit, keys only
69 a prefix is added to every key and range end
"""
_KEYS = """
70 a table's keys are created together; the same create again succeeds, another one fails
71 the topics that a region's log uses
72 many logical tables in chunks of one transaction
73 a rename frees the old name and keeps the id; a second time it changes nothing
74 a change computed from an old version is refused
75 a changed route rewrites the reverse index of every node in it
76 a changed route rewrites topics too
77 a region that is not served is marked in the route until it is
78 dropped keys are moved aside, restored unchanged, or destroyed
79 dropped tables are found by id and name, also when the name is used again
80 views are created and changed
81 a node's new address is used without a change of routes
82 keys are moved aside together, whatever changes at the same time
83 flows have names, ids and routes
84 the state of flows is merged by node
85 topics of regions are changed in one transaction
"""
_DDL = """
86 a create of a taken name is refused
87 a create of a taken name succeeds with `if_not_exists`
88 a new table has the next id
89 the errors of a node after which a create is tried again
90 a retry reads the node's address again
91 a create that finds other metadata under its keys is refused
92 a create answers with the table's id
93 regions of a table under way are not treated as strays
94 logical tables on a physical one
95 a rename to a taken name, and one of a missing table, are refused
96 a schema change is sent to leaders and followers
97 some nodes succeed and some fail
98 an alter changes names, columns and options, and the version
99 a table that skips its log
100 a change of texts alone is sent to no node
101 columns of logical tables
102 a drop of a missing table; a drop that is undone or repeated
103 a dropped table keeps its data for a time, and its name is free
104 a dropped table can be restored unless its name is taken; a purged one cannot
105 a database is dropped with its contents
106 a database is created once, whichever answers are lost
107 views are created and dropped
108 flows are created and dropped
109 events of DDL are bounded and can be filtered
"""
_MOVES = """
110 a move declares the locks that it needs, for its region alone
111 the stored record of a move is read as it was written
112 the record of a move that another version wrote is read, and the move ends
113 a move is taken up by the next leader at any step
114 readers of the catalog are told once of the new leader
115 the steps of a move in their order; the region waits for no lease
116 the destination cannot open the copy for now: it is tried again, and the leader is as before
117 the destination never has the rows: the move is undone, and the leader is as before
118 the destination opens at the second try, and the move ends
119 a move of a region that another leads, is led there already, or that is gone
120 each answer of a destination that makes no copy: none, a refusal, not now
121 rows in memory are written to files before a switch; copies that do not do it hold up nothing
122 the leader is replaced only where the route still names it
123 the leader is made to hold writes; one that does not answer, or is late, leads on
124 the destination lacks records: it is waited for, and in the end the leader leads on
125 the route names the new leader and its copies once, and a repeat changes nothing
126 what is undone concerns the region of the move alone
127 a move that cannot be is refused at once, with the reason
"""
_SECTIONS: Mapping[str, str] = {
    "Procedures": _PROCEDURES,
    "Stores, locks, ids": _STORES,
    "Keys": _KEYS,
    "DDL": _DDL,
    "Moves of regions": _MOVES,
}

_EVENTS = "there is no recorder of events: the timeline in the record is always written"
_LOGICAL = "there are no logical tables: a table is its regions"
_TOPICS = "a region's log is its own folder, and has no topic"
_FLOWS = "there are no flows"
_VIEWS = "there are no views"
_WHY_NOT: Mapping[int, str] = {
    6: _EVENTS,
    13: _EVENTS,
    71: _TOPICS,
    72: _LOGICAL,
    76: _TOPICS,
    80: _VIEWS,
    83: _FLOWS,
    84: _FLOWS,
    85: _TOPICS,
    94: _LOGICAL,
    99: "every batch is in the log before it is acknowledged",
    101: _LOGICAL,
    107: _VIEWS,
    108: _FLOWS,
    109: _EVENTS,
}
_NOT_BUILT: Mapping[int, str] = {}
_IN_PART: Mapping[int, str] = {
    14: "the task and the locks; memory is not measured",
    23: "one new leader; a leader that commits nothing leaves no mark in the record",
    55: "locks; ids and states have their forms by their types",
    79: "by id and by name, for two tables; not for a name that was used more often",
    90: "routes need no write; an order that fails half way is not sent to the new address",
    111: "as part of every record; not by a literal text",
    121: "copies that do not answer; that a flush fails is not told apart",
    127: "one region in one request: a drain moves those of a node",
    102: "what is not there; a drop that is repeated is in the crash enumeration",
}

_HEADER = """\
# Conformance: the cases of another metadata service

GreptimeDB has a metadata service of the same kind. This page lists the cases that its tests cover
(procedures, stores, keys, DDL, moves of regions), in our words, and the tests that cover them here.
Where its users report its behaviour as a defect, the test here asks for the correct behaviour.
Online schema change ([online-change.md](online-change.md)), wrong input
([robustness.md](robustness.md)) and the catalog ([catalog-cases.md](catalog-cases.md)) have pages
of their own.

Shown by a test: {shown} of {total}, {part} of them in part. Not built: {missing}. Not applicable to
this design: {other}. Each such row gives its reason.

Generated by `make generate` from the marker `case` of the tests and from
`scripts/documents/conformance_cases.py`; do not edit.
"""
GREPTIME = Catalogue(
    "greptime", "docs/conformance.md", _HEADER, _SECTIONS, _WHY_NOT, _NOT_BUILT, _IN_PART
)
