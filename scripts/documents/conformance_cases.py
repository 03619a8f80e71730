"""Cases that another system's tests state of its procedures, keys and DDL, in our own words.

Number, and what it is about. Which test here shows a case, its marker `case` says.
"""

from collections.abc import Mapping

from scripts.documents.catalogue import Catalogue

APPLY_MIN = 93

_PROCEDURES = """
1 a submitted procedure is found by its id and can be waited for; an unknown id is not found
2 what a manager knew in memory is gone when its term is over
3 nothing is started for a manager that has stopped
4 an id that is there already is not submitted a second time
5 a procedure, its children and theirs are listed, the root first
6 a filter says of which kinds events are made
7 one submission is announced exactly once
8 a submission overtaken by the end of the term leaves nothing, and says so
9 a child is announced once, and has the client of its parent
10 a child that could not be submitted is not half there
11 a record written before a field existed is resumed
12 who asked is still known after a recovery
13 events begin when their recorder is installed
14 the end of a term stops the task of a procedure and lets go of its memory
15 two kinds cannot bear one name
16 a new leader takes up a parent and its child, and makes no second child
17 the id of a procedure that is over is not taken again
18 a step that fails is undone in states that can be seen; a mistake of ours is not undone
19 before its term has begun a manager takes nothing
20 a server that led, was deposed and leads again takes submissions
21 what is over is forgotten after its time, and not before
22 beyond the limit a submission is refused, and taken once there is room
23 a procedure that is recovered knows it, once for each new leader
24 while all is paused nothing new begins
25 a procedure is not lost by a crash between its submission and its first step
26 more stored procedures than may run at once are all resumed
27 a record of an unknown kind is kept, and keeps nobody else from being resumed
28 each step leaves its record, the last one the end
29 a procedure with nothing to keep between its steps writes once
30 a step that repeats itself without children is run again at once
31 a parent goes on when its children are over, and sees how each ended
32 the end of a term between two steps leaves the record as it was
33 so does the end of a term in a step that fails
34 a step that fails for good and has nothing to undo ends the procedure
35 a step that fails for good is undone, and the first error is kept
36 a step that fails for a while is run again until it succeeds
37 that a step is being retried can be seen
38 a child that is retried and then fails leaves its parent to decide
39 retries have an end
40 an undo that fails for a while is tried again
41 when retries are at their end, the undo runs once
42 a child that fails can fail its parent, and nothing is left of either
43 a poison is cleared by the step that got over it
44 a failure that left nothing clears the poison
45 a failure that left something keeps the poison
46 retries at their end clear a poison that is not needed
47 a poisoned procedure is neither ended nor forgotten
48 of two procedures that want one key the second waits for the first
49 a child that needs a key of its parent does not wait for ever
50 nor does one whose parent can be undone
51 which pairs of lock modes exclude each other
52 when an undo begins after a failure
53 progress between two failures begins the count anew
54 only a declared resource is poisoned
"""
_STORES = """
55 ids, locks and states have one text form each, without repeats
56 a key that we would not have written is not taken for one
57 a stored record comes back as it was
58 which keys a procedure has while it runs, is undone and is over
59 a new leader tells what runs, what is over and what is being undone
60 a long range is read in pages, in order; an error on the way is passed on
61 a value above the store's limit
62 a poison belongs to one procedure, and can be set and cleared twice
63 many share a lock or one has it; what nobody holds takes no room
64 whoever waits for a procedure waits through its retries
65 ids rise, are never given twice, and survive contention and restarts
66 switches are set, read and unset
67 what a transaction compares, and which branch it answers
68 ranges: one key, a prefix, all, a limit, keys only
69 a prefix is added to every key and range end
"""
_KEYS = """
70 a table's keys are created together; again the same is success, another one is not
71 which topics a region's log uses
72 many logical tables in chunks of one transaction
73 a rename frees the old name and keeps the id; twice changes nothing
74 a change computed from a version that has passed is refused
75 a changed route rewrites the reverse index of every node concerned
76 a changed route rewrites topics too
77 a region that is not served says so in the route until it is
78 dropped keys are moved aside, brought back as they were, or destroyed
79 dropped tables are found by id and name, also when the name is used again
80 views are created and changed
81 a node's new address is seen without a change of routes
82 keys are moved aside whole, whatever changes meanwhile
83 flows have names, ids and routes
84 the state of flows is merged by node
85 topics of regions are changed in one transaction
"""
_DDL = """
86 a create of a name that is taken is refused
87 or is success, if it says so
88 a new table has the next id
89 which errors of a node let a create be tried again
90 a retry asks the node where it is now
91 a create that finds other metadata in its place is refused
92 a create answers the table's id
93 regions of a table on its way are not taken for strays
94 logical tables on a physical one
95 a rename to a taken name and of a missing table are refused
96 a schema change is sent to leaders and followers
97 some nodes succeed and some fail
98 an alter changes names, columns and options, and the version
99 a table that skips its log
100 a change of words alone is sent to no node
101 columns of logical tables
102 a drop of what is not there; a drop that is undone or repeated
103 a dropped table keeps its data for a time, and its name is free
104 a dropped table comes back unless its name is taken; what is purged does not
105 a database is dropped with what is in it
106 a database is created once, whatever answers are lost
107 views are created and dropped
108 flows are created and dropped
109 events of DDL are bounded and can be filtered
"""
_SECTIONS: Mapping[str, str] = {
    "Procedures": _PROCEDURES,
    "Stores, locks, ids": _STORES,
    "Keys": _KEYS,
    "DDL": _DDL,
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
_NOT_BUILT: Mapping[int, str] = {96: "no region has a follower"}
_IN_PART: Mapping[int, str] = {
    14: "the task and the locks; memory is not measured",
    23: "one new leader; one that commits nothing leaves no mark in the record",
    55: "locks; ids and states have their forms by their types",
    79: "by id and by name, of two tables; not of a name that was used more often",
    90: "routes need no write; an order that fails half way is not sent to the new address",
    102: "what is not there; a drop that is repeated is in the crash enumeration",
}

_HEADER = """\
# Cases

Generated by `make generate` from the marker `case` of the tests and from
`scripts/documents/conformance_cases.py`; do not edit. What the tests of another system of this kind
(GreptimeDB) ask of its procedures, keys and DDL, in our words, and which test asks it here. Where
that system does what its own users call a defect, the test here asks for the better.
Cases of online schema change are a page of their own ([online-change.md](online-change.md)), as
is bad input ([robustness.md](robustness.md)).

{shown} of {total} cases are shown by a test, {part} of them in part; {missing} are about what is
not built, {other} cannot apply here.
"""
GREPTIME = Catalogue(
    "greptime", "docs/conformance.md", _HEADER, _SECTIONS, _WHY_NOT, _NOT_BUILT, _IN_PART
)
