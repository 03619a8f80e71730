"""Operations of a sequence on a store, as data: revisions are relative, leases are numbers.

Each operation is run on MemoryKv and on etcd. Revisions are MemoryKv's; `Side` moves them.
"""

from dataclasses import dataclass
from enum import StrEnum

from hypothesis import strategies as st

from keys.store.kv import Get

KEYS = (b"", b"a", b"a\0", b"a/", b"a/1", b"a/2", b"b", b"\xff", b"\xff\xff")
ENDS = (None, b"\0", b"", b"a/", b"a0", b"b", b"\xff")
VALUES = (b"", b"1", b"2", b"\0\xff")
LEASES = 3
OPERATIONS = 30


class Expect(StrEnum):
    """A compare's expectation of a key or range, relative to its contents when it is made."""

    ABSENT = "absent"
    AS_IT_IS = "as it is"
    ONE_OLDER = "one older"
    ONE_NEWER = "one newer"


@dataclass(frozen=True, slots=True)
class Expected:
    key: bytes
    end: bytes | None
    how: Expect
    or_older: bool


@dataclass(frozen=True, slots=True)
class Written:
    """`value` None: deleted. `lease` counts those granted so far, from 0; beyond them: none."""

    value: bytes | None
    lease: int


@dataclass(frozen=True, slots=True)
class Transact:
    compares: tuple[Expected, ...]
    writes: dict[bytes, Written]
    reads: tuple[Get, ...]
    on_refusal: tuple[Get, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """`age` None: now; else so many revisions ago; below 0: that many to come."""

    get: Get
    age: int | None


@dataclass(frozen=True, slots=True)
class Watch:
    """Watches what was written since, up to a last put at `key`, which ends it."""

    key: bytes
    end: bytes
    age: int


@dataclass(frozen=True, slots=True)
class Compact:
    age: int


@dataclass(frozen=True, slots=True)
class Grant:
    pass


@dataclass(frozen=True, slots=True)
class Revoke:
    lease: int


@dataclass(frozen=True, slots=True)
class KeepAlive:
    lease: int


Operation = Transact | Read | Watch | Compact | Grant | Revoke | KeepAlive


def _is_a_range(asked: Watch) -> bool:
    return asked.key < asked.end


keys, ends = st.sampled_from(KEYS), st.sampled_from(ENDS)
leases = st.integers(0, LEASES)
ages = st.integers(-2, 12)
newer_than = st.just(0) | st.integers(1, OPERATIONS)
gets = st.builds(
    Get, keys, ends, st.integers(0, 3), st.booleans(), st.just(False), newer_than=newer_than
)
transactions = st.builds(
    Transact,
    st.lists(
        st.builds(Expected, keys, ends, st.sampled_from(Expect), st.booleans()), max_size=2
    ).map(tuple),
    st.dictionaries(
        keys,
        st.builds(Written, st.none() | st.sampled_from(VALUES), leases),
        max_size=4,
    ),
    st.lists(gets, max_size=2).map(tuple),
    st.lists(gets, max_size=2).map(tuple),
)
reads = st.builds(Read, gets, st.none() | ages)
# `one_of` gives every kind the same weight, however often it is named.
weighted: tuple[st.SearchStrategy[Operation], ...] = (
    *(transactions,) * 7,
    *(reads,) * 2,
    st.builds(Compact, st.integers(-1, 12)),
    st.builds(Grant),
    st.builds(Revoke, leases),
    st.builds(KeepAlive, leases),
)
operations = st.sampled_from(weighted).flatmap(lambda kind: kind)
# etcd looks for the past of a new watch ten times a second, which costs more than all the rest: so
# one watch in every other sequence, somewhere.
watches = st.one_of(
    st.builds(Watch, keys, st.just(b"\0"), st.integers(-1, 12)),
    st.builds(Watch, keys, st.sampled_from(ENDS[2:]), st.integers(-1, 12)).filter(_is_a_range),
)


def _with_watch(sequence: list[Operation], watch: Watch, place: int) -> tuple[Operation, ...]:
    return tuple(watch if number == place else one for number, one in enumerate(sequence))


sequences = st.builds(
    _with_watch,
    st.lists(operations, min_size=OPERATIONS, max_size=OPERATIONS),
    watches,
    st.integers(0, 2 * OPERATIONS),
)
