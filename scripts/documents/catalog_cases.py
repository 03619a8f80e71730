"""Cases of a catalog with versions, in our own words: 150 cases.

The test that shows a case has its number in the marker `case`, as `catalog 12`. The reasons why a
case has no test are in `catalog_reasons.py`.
"""

from collections.abc import Mapping

from scripts.documents.catalog_reasons import IN_PART, NOT_BUILT, WHY_NOT
from scripts.documents.catalogue import Catalogue

SHOWN_MIN = 111
"""Number of cases that have a test; it only rises."""

_VERSIONS = """
1 a catalog without a log has version 0, the earliest time, and holds nothing
2 the first start makes version 1 with what every cluster begins with, and nothing else
3 changes that succeed one after another have versions that follow one another
4 a version that was never made is refused, never answered with another
5 a change that loses its race every time is tried a bounded number of times, and then fails
6 a version has an activation time, and no reader by time sees it before that
7 a change is answered when every server has activated its version
8 a command that changes nothing waits for the current version to be active everywhere
9 a refusal that rests on a version not yet active is told when that version is active
10 a server whose term has ended takes no command, and touches neither log nor clock for it
11 the log is started once with its server and stopped once with it
12 a batch whose second command cannot be done: nothing of it is seen, no version is made
13 a batch of commands that can be done makes one version
14 a batch says of each command whether it changed anything
15 a batch of commands that change nothing makes no version and no log entry
16 a command of a batch is judged on the result of those before it
17 thirty creates at once through several servers all succeed
18 a restart changes no version's time, whatever the clock says by then
19 a restart after a compaction starts at the snapshot and reads only what is above it
20 a time names the newest version that is not younger, exactly at its commit too
21 the times of versions strictly rise
"""
_LOG = """
22 the first append to an empty log, at any version that the log may begin with
23 an append succeeds at the next version alone: not at one that exists, not beyond a gap
24 an append that is refused reaches no handler
25 a start replays the updates that exist in their order, with their first revisions
26 a start hands over the snapshot and the updates above it, and nothing else
27 a snapshot not newer than the last is refused; a newer one removes what is below it
28 a log without a handler cannot be started
29 a version is not applied before the handlers of its update have ended
30 a handler is told the revision at which its update was committed
31 the first start marks the log with the name of the product, and a later start keeps the mark
32 a log that another product has marked is refused
33 two writers of one version: one succeeds, and the other's command is judged again
"""
_TABLES = """
34 a new table: column ids from the first on, version 1, its primary key
35 a new table is absent from the versions before it
36 the index of the primary key has the name that its creator chose
37 two tables have different ids
38 a table of a name that is in use is refused, and the answer names it
39 a table of a name that is in use, if it does not exist: nothing is changed, and it is said so
40 a dropped table is absent now, and there at earlier versions and times
41 a table dropped and made again has another id; the old one is read at old versions
42 a drop of a table that is not there is refused, and the answer names it
43 of several drops in a batch one finds nothing: none is done
44 an added column has the next id, stands last, and raises the table's version
45 a column of a name that is in use is refused
46 a dropped column is absent, others keep their ids, and its name comes back with a new id
47 a column of the primary key is not dropped
48 a column that an index is over is dropped: its index is not left without it
49 an index on its way out does not keep its column
50 an index of another table over a column of the same name is not in the way
51 of several columns added if they do not exist only those that are missing are added
52 of several columns dropped if they exist only those that are there are dropped
53 columns added by one change: ids and places in order, public in one version, absent before
54 of several columns added by one change one cannot be: none is added
55 a column that is not nullable needs a default
56 a default that is a function is refused unless it is one that is evaluated once
57 a renamed table keeps id, columns and schema version, and its old name is free
58 a rename to a name that is in use is refused
59 a default set, changed, repeated and removed; what repeats it changes nothing
60 not null is dropped from a value column, never from one of the primary key
61 the precision of a decimal rises at once, and falls only if no row contradicts
62 a length is only raised, and only of types that have one
63 the scale of a decimal is changed only where no value changes
64 the types that a type may become without a look at rows; a key column keeps its type
65 several changes of one table in one request take effect in one version
66 a default of another type than its column is refused
67 thresholds of statistics outside their range are refused
68 a create, an alter and a drop are each one event, with the version they made
69 an event that is still handled holds back the version it belongs to
70 events of two tables come in the order of their versions
71 tables of one name in several schemas are told apart
72 each table that cannot be is refused with its reason
73 a request that was made is not changed by what its sender does later
74 a change bears the time of its commit
"""
_INDEXES = """
75 a new index is not readable at first, and not unique unless it is asked for
76 each column of an index has its order, and their numbers must agree
77 a state is entered only from the state before it
78 an index whose entries are complete becomes readable
79 the drop of a readable index stops its reads before its entries go
80 the drop of an index that never became readable removes it
81 only an index that is no longer maintained is removed
82 a dropped table takes its indexes along in the same version
83 the index of the primary key is not dropped
84 an index of a name that is in use is refused
85 columns of an index that are missing, repeated or none are refused
86 a unique index has all columns that decide a row's region
87 indexes are listed by their ids
88 an index made again under its name has another id
89 an index is renamed, and keeps id and state
90 the index of the primary key is readable from the start
"""
_BUILDING = """
91 entries are not made before statements of older versions have ended
92 a region without a leader is tried again; if that never ends the change does not either
93 a holder that has not followed is waited for and named; a call that fails is made again
94 what is left to fill is recorded for each region; the last one makes the index readable
95 a crash between the last region and the next state: the next leader goes on from the record
96 an index dropped while it is filled: the filling ends and leaves nothing
97 a statement that began before a drop still maintains the index, which waits for it
98 a late write behind the filling does not leave the index wrong
"""
_SCHEMAS = """
99 a placement made without options has the defaults
100 placements that cannot be are refused
101 the quorum follows the number of copies, and one that does not fit it is refused
102 fewer copies reduce the quorum
103 the number of partitions is not altered
104 a placement that is used, or is the default, is not dropped
105 without a default placement the first table makes one, which later tables share
106 a renamed placement keeps its id; a name in use is refused
107 a placement dropped and made again has another id; each change is an event
108 the default placement set to what it is changes nothing
109 a schema that holds something is dropped only with a cascade, and then with all of it
110 names of the system are not given to objects of users
111 one name may be used in several schemas, for tables and for indexes
112 a schema dropped and made again has another id
113 a view of the system that is the same is left, one that differs is replaced
"""
_FORMATS = """
114 every entry of the log is read back as it was written
115 what an older version wrote is read by this one
116 what a newer version wrote is refused, and the error says so
117 the formats declare their versions, and a mistake in that is found early
118 an entry that is not known stops the reader; it is never skipped
"""
_COMPACTION = """
119 the log is compacted up to the oldest version that anybody needs
120 only the leader compacts, and the next leader goes on
121 more members or tables than needed do not keep it from compacting
122 a member of which nothing is known keeps it from compacting
123 an index that is being made keeps the version it began at
124 nothing that may be given up: nothing is compacted
125 a member that cannot say what it needs: nothing is compacted
126 one compaction at a time
127 a member that does not answer in time ends the round without an error
128 regions that move keep the versions they need
129 a member without that history has no error
130 what is needed is asked of leaders, each for its own
131 compacted twice: the second changes nothing; what was removed is answered as expired
132 what was dropped before the compaction is gone after it
133 a member that was away since before the oldest version recovers
134 the compacting server dies: the next leader finishes it
"""
_SYNC = """
135 an operation waits until its server knows the versions of its time, and no longer
136 a slow reader of other keys does not delay the catalog; one of the catalog does
137 what one server has changed is seen by a statement at another, and by a change at another
138 a server stops although an operation waits for a version
139 a leader whose catalog lags goes on when it has caught up
140 no version is published before the regions that it concerns know it
141 a table altered under a transaction: its next statement is refused if it must be; others go on
142 a table dropped under a transaction: its statements and its end are refused
143 a change that fits between start and end lets a transaction end, another does not
144 a statement of its own that meets another schema is tried again unseen
145 timing that protects readers is not changed under them
146 after a restart no operation waits longer than for what was committed
"""
_EXTRA = """
147 whoever reads after a change was answered, at any server, reads its version or a later one
148 the same log makes the same catalog everywhere
149 a change repeated with its key has the same version and answer; the key is in the same write
150 a crash between commit and answer: the key finds the first answer
"""
_SECTIONS: Mapping[str, str] = {
    "Versions and batches": _VERSIONS,
    "The log": _LOG,
    "Tables": _TABLES,
    "Indexes": _INDEXES,
    "Indexes that are filled": _BUILDING,
    "Placements and schemas": _SCHEMAS,
    "Formats": _FORMATS,
    "Compaction": _COMPACTION,
    "Servers and statements": _SYNC,
    "Further properties": _EXTRA,
}

_HEADER = """\
# Cases of a catalog with versions

The cases that Apache Ignite's tests cover for its catalog (versions, the update log, tables,
indexes, formats, compaction, synchronization), in our words and for this design, and the tests that
show them here. What the other system calls a distribution zone is a *placement* here.

Shown by a test: {shown} of {total}, {part} of them in part. Not built: {missing}. Not applicable to
this design: {other}. Each such row gives its reason.

Generated by `make generate` from the marker `case` of the tests and from
`scripts/documents/catalog_cases.py`; do not edit.
"""
CATALOG = Catalogue(
    "catalog", "docs/catalog-cases.md", _HEADER, _SECTIONS, WHY_NOT, NOT_BUILT, IN_PART
)
