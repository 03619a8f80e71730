"""Wide locks exclude whatever the locks of single commands do, and are few."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.model.records import Lock
from metasrv_base.errors import Refused
from procedures.kinds.batch import staged_members
from procedures.kinds.batch.staged_members import wide_locks
from procedures.locking.locks import (
    catalog_key,
    exclusive,
    in_schema,
    is_schema_side,
    name_key,
    schema_key,
    shared,
    table_key,
    whole_table,
)

NAMES = st.sampled_from(["a", "b", "c"])


@st.composite
def held(draw: st.DrawFn) -> tuple[Lock, ...]:
    """Locks of one command, or of anybody else."""
    catalog, schema, name = draw(NAMES), draw(NAMES), draw(NAMES)
    number = draw(st.integers(1, 3))
    return draw(
        st.sampled_from(
            [
                whole_table(catalog, schema, name, number),
                in_schema(catalog, schema, exclusive(name_key(catalog, schema, name))),
                in_schema(catalog, schema, exclusive(table_key(number))),
                (shared(catalog_key(catalog)), exclusive(schema_key(catalog, schema))),
                (exclusive(catalog_key(catalog)),),
            ]
        )
    )


def clash(left: tuple[Lock, ...], right: tuple[Lock, ...]) -> bool:
    """Whether the two hold a key of the schema side that they cannot share."""
    modes = {lock.key: lock.mode for lock in left if is_schema_side(lock.key)}
    return any(lock.key in modes and {lock.mode, modes[lock.key]} != {"shared"} for lock in right)


@given(commands=st.lists(held(), min_size=1, max_size=4), other=held())
def test_given_any_locks_when_widened_then_they_exclude_no_less(
    commands: list[tuple[Lock, ...]], other: tuple[Lock, ...]
) -> None:
    wide = wide_locks(lock for locks in commands for lock in locks)
    named = {lock.key for lock in other if lock.key.startswith("table:")}

    for locks in commands:
        if clash(locks, other) and not ({lock.key for lock in locks} & named):
            assert clash(wide, other)


def test_given_many_names_when_widened_then_one_lock_of_their_schema_is_left() -> None:
    locks = [lock for n in range(500) for lock in whole_table("main", "s", f"t{n}", n)]

    assert set(wide_locks(locks)) == {
        shared(catalog_key("main")),
        exclusive(schema_key("main", "s")),
    }


def test_given_many_schemas_when_widened_then_their_catalog_is_locked_or_it_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(staged_members, "LOCKS_MAX", 3)
    one = [exclusive(schema_key("main", f"s{n}")) for n in range(9)]
    assert wide_locks([shared(catalog_key("main")), *one]) == (exclusive(catalog_key("main")),)

    with pytest.raises(Refused) as refused:
        wide_locks(exclusive(catalog_key(f"c{n}")) for n in range(4))
    assert refused.value.facts == {"needs": "4 locks", "limit": 3}
