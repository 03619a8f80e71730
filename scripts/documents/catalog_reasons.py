"""The catalog cases that have no test, or tests that show a part of them, with the reasons."""

from collections.abc import Mapping

_VALID = "a version is valid from its commit (decision 0172)"
_NO_KEY_INDEX = "the primary key has no index: a region keeps its rows in the order of the key"
_MARK = "the log has no mark of a product: the key of the cluster is the mark of a prefix"
_ASKED = "no member is asked: the leader knows what holders, procedures and pins need"

WHY_NOT: Mapping[int, str] = {
    6: _VALID,
    7: _VALID,
    8: _VALID,
    9: _VALID,
    36: _NO_KEY_INDEX,
    62: "no type has a length",
    67: "there are no statistics of tables",
    69: "streams of events are not handlers: they hold nothing back",
    76: "a column of an index has no order of its own: its entries rise",
    83: _NO_KEY_INDEX,
    90: _NO_KEY_INDEX,
    105: "the default placement always exists: the bootstrap makes it, or the first leader",
    113: "there are no views",
    **dict.fromkeys((125, 127, 128, 130), _ASKED),
}
NOT_BUILT: Mapping[int, str] = {
    **dict.fromkeys((31, 32), _MARK),
    51: "an operation on a column has no `if_not_exists`",
    52: "an operation on a column has no `if_exists`",
    89: "an index cannot be renamed",
}
IN_PART: Mapping[int, str] = {
    5: "by its time, not by a count: a lost race is run again until the deadline of the procedure",
    34: "the primary key has no index",
    48: "the index is dropped with its column, in the same versions; nothing is refused",
    56: "`now()` of a timestamp or a date is evaluated once",
    59: "a default that is set to what it is makes a version",
    60: "not null is also set, once no row contradicts",
    65: "elements have versions of their own on the way; one makes all of them public",
    74: "the log bears it; a table shows the time of its creation",
    84: "names of indexes are told apart for each table; one on its way out keeps its name",
    146: "the first time of the next leader; readers wait by versions, not by times",
}
