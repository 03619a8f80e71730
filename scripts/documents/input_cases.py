"""Cases of wrong or badly timed input from clients and nodes, in our own words.

Number, input, answer; the test that shows a row has its number in the marker `case`.
"""

from collections.abc import Mapping

from scripts.documents.catalogue import Catalogue

_BODIES = """
1 a create without a body: 400 `malformed-json`
2 `null`: 422
3 an array: 422
4 JSON that is cut off: 400 `malformed-json`
5 JSON with trailing text: 400
6 a duplicate key: 400
7 an unknown field: 422
8 200,000 open brackets: 400
9 bytes that are not UTF-8: 400
10 a byte order mark: 400
11 half a surrogate pair: 400
12 `NaN`, `Infinity`: 400
13 `1e999`: 400
14 an integer of 5,000 digits: 400
15 2^63 where 64 bits hold the value: 422
16 `true` where a number is wanted: 422
17 a number in quotes: 422
18 `1.0` where an integer is wanted: 422
19 -1, 0 or a million partitions: 422
20 a content type of text, or none: 415
21 a body in UTF-16: 400
22 a compressed body: 415
23 a body of 10 MB: 413
24 a body of 2 MB without a length: 413
25 a body that sends a byte every 5 seconds: 408
"""
_HEADS = """
26 half a head, then silence: answered and closed within seconds
27 headers of 200 KB: 431
28 a length and chunks at once: 400, and closed
29 two lengths, a bare line feed, no host or a foreign one: 400
"""
_TABLES = """
30 a name that is empty, too long, begins with a digit or has a space: 422 `invalid-identifier`
31 a name with `/`: 422
32 the names `.` and `..`: 422
33 a name with a NUL byte: 422
34 a name that ends with a line feed: 422
35 a name with invisible characters: 422
36 a name with look-alike characters: 422
37 reserved names: 422 `reserved-name`
38 `%2F` in a path: 400 `bad-path`
39 `%00` in a path: 400
40 `%ff` in a path: 400
41 meaningless or double escapes: 400 or 422
42 a trailing slash: 404
43 no columns: 422
44 100,000 columns: 413 or 422
45 a duplicate column, also in another case: 422
46 a type that does not exist: 422
47 a primary key over columns that cannot have one: 422
48 partitions that overlap, or are not in order: 422
49 a change too large for one transaction: 422 `ddl-too-large`
50 a table that exists: 409; `if_not_exists` with another definition: 409 `schema-conflict`
51 a missing schema: 404; one that is being dropped: 409 `being-dropped`
52 a field that only the service may set: 422
53 the idempotency key of another request: 422 `idempotency-key-reused`
54 an idempotency key that is empty, long or not printable: 400
55 `If-Match` of another version: 412; of no valid tag: 422; none: accepted
56 a rename to its own name: 422; to a taken one: 409; to another catalog: 422
57 a drop of a key column, a narrower type, an invalid default or check: 422
58 a second change while one runs: it queues, or 409 `object-locked` where it may not
59 an index that exists and is not public yet
60 an index on a column that does not exist, or on none
61 a unique index over duplicate values
62 a drop of a missing table: 404; again with its key: the first answer; of a poisoned one: 409
63 a page of 0, -1, 10^9 or `abc`: 422
64 a page token that is forged or of another list: 400; of an expired version: 410
"""
_FOLLOWING = """
65 an expired version: 410; no number: 422; an unknown event id: `reset`
66 more streams than a server allows: 503, and no stream
"""
_FAILOVERS = """
67 a failover of a region that does not exist: 404; of an invalid region id: 422
68 a target that leads it: 422; that is unknown: 404; that is dead or cordoned: 409
69 a failover of a healthy node without `force`: 409 `node-still-alive`
70 a region that another change is moving: it queues, or 409 where it may not
71 an old epoch: 412 `epoch-mismatch`; none: accepted
72 a migration from a node that does not lead it, or to itself
73 a migration with an invalid timeout
74 a failover of the whole cluster without a confirmation
75 the second half of a freeze without the first
76 a freeze in the future, or before the last one
"""
_MOMENTS = """
77 a write to a follower: forwarded; a heartbeat: 421 with the leader's address
78 a write without a leader: 503 `no-leader` with Retry-After
79 a write while etcd has no space: 507 `storage-full`, not attempted
80 a write whose outcome is unknown: 504 `outcome-unknown`
81 a procedure id that is no UUID, or unknown: 404
82 a cancel after the end or the point of no return: 409; twice: the same answer
83 a resume of a procedure that is not paused: no change; of one that has ended: 409
84 a procedure or step of the client's own: 405, 404
"""
_NODES = """
85 a Spark job with settings, jars or SQL of the client's
86 a storage root that is relative, has `..`, or is a URL: 422
87 a report of a job that is unknown, old or done
88 two living processes with one node id: the newest registered is heard, the other gets 410
89 an address that no node can have: 422
90 a name that resolves to such an address: no connection
91 a heartbeat in the name of another node: 403
92 a heartbeat of a node that never registered: 404; of an old process: 410
93 a sequence number that is lower or equal: ignored; far ahead: accepted; 2^63: 422
94 a region it does not lead: told to close it; an unknown epoch: no lease; no route changes
95 a region twice: 422; more than a body holds: 413; an unknown region: told to drop it
96 a disk of -1 bytes: 422; `NaN`: 400; 1e308: 422
97 a schema version that does not exist, or is old
98 a heartbeat for another cluster: 409 `wrong-cluster`
99 a thousand heartbeats a second from one node
"""
_WHO = """
100 no token, a malformed, revoked or query token: 401 with a challenge
101 an action that the holder of a token may not do
102 an object that belongs to another client
103 a method that a route does not have: 405 with `Allow`; a route that does not exist: 404
104 headers that ask for another form, method or origin: ignored
105 500 changes at once by one client
106 a client that disconnects: its procedure is absent, or completes
107 another address without tokens, tokens readable by others, unsafe settings: exit 78, a reason
108 a restore from a file that is no backup: refused as `invalid-backup`, nothing is written
"""
_SECTIONS: Mapping[str, str] = {
    "Bodies": _BODIES,
    "Request heads": _HEADS,
    "Tables": _TABLES,
    "Versions and streams": _FOLLOWING,
    "Failovers": _FAILOVERS,
    "Leadership, storage, procedures": _MOMENTS,
    "Nodes": _NODES,
    "Authentication, methods, clients": _WHO,
}

_MIGRATE = "there is no migration; its route answers 404, and a failover names its targets"
_FREEZES = "there are no freezes; their route answers 404"
_ROLES = "there are no roles: the holder of a token may do everything"
_WHY_NOT: Mapping[int, str] = {
    74: "a failover names a node or regions, never the whole cluster",
    85: "no route accepts a job: the leader makes its jobs itself",
    87: "no route accepts a report: a job answers through the pipe of its driver",
    97: "nodes report no schema versions: every order carries the schema",
}
_NOT_BUILT: Mapping[int, str] = {
    72: _MIGRATE,
    73: _MIGRATE,
    75: _FREEZES,
    76: _FREEZES,
    99: "there is no rate limit for a node; a heartbeat that is not newer costs no work",
    101: _ROLES,
    102: _ROLES,
    105: "there is no rate limit for a client; a full queue answers 429 to all",
}
_IN_PART: Mapping[int, str] = {
    55: "tables; other resources with a version have no test of it",
    62: "absent, and repeated with its key; of a poisoned one by other tests",
    95: "each answer by a test of its own; none sends all three in one heartbeat",
}

_HEADER = """\
# Robustness: wrong input and its answers

Wrong or badly timed input from clients, nodes and operators, the answer to each, and the tests that
send it. The numbers in the table are status codes of HTTP, the names are
[problem codes](problems/README.md). The tests also check that a refused request leaves the store
unchanged and that the server goes on serving.

Shown by a test: {shown} of {total}, {part} of them in part. Not built: {missing}. Not applicable to
this design: {other}. Each such row gives its reason.

Generated by `make generate` from the marker `case` of the tests and from
`scripts/documents/input_cases.py`; do not edit.
"""
INPUTS = Catalogue(
    "input", "docs/robustness.md", _HEADER, _SECTIONS, _WHY_NOT, _NOT_BUILT, _IN_PART
)
