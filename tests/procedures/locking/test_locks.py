"""Holders of locks: properties of a pure function of the records (docs/protocols.md P2)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.model.records import Lock, LockMode
from procedures.kinds.registry import KINDS
from procedures.locking.holding import LockClaim, LockTable, holders
from procedures.locking.locks import distinct, exclusive, region_key, route_key, shared, table_key
from tests.procedures.harness.scenarios import SCENARIOS

MODES = st.sampled_from([shared, exclusive])
KEYS = ("name:main.public.a", "name:main.public.b", "table:1", "route:1", "region:4294967296")
SETS = st.dictionaries(st.sampled_from(KEYS), MODES, max_size=4)
PLACEMENT = ("route", "region")


@st.composite
def claim_lists(draw: st.DrawFn) -> list[LockClaim]:
    """Claims in order of submission; some are children of an earlier one. Whoever takes a region
    takes its route as well, as every kind does (docs/protocols.md P2)."""
    found: list[LockClaim] = []
    for number in range(draw(st.integers(0, 7))):
        wanted = draw(SETS)
        if "region:4294967296" in wanted:
            wanted.setdefault("route:1", shared)
        parent = draw(st.sampled_from([None, None, *(claim.procedure for claim in found)]))
        locks = tuple(make(key) for key, make in wanted.items())
        found.append(LockClaim(f"p{number}", number, locks, parent))
    return found


def conflict(one: LockClaim, other: LockClaim) -> bool:
    return any(
        a.key == b.key and LockMode.EXCLUSIVE in (a.mode, b.mode)
        for a in one.locks
        for b in other.locks
    )


def elders(claim: LockClaim, claims: Sequence[LockClaim]) -> set[str]:
    by_name = {one.procedure: one for one in claims}
    found: set[str] = set()
    while claim.parent is not None:
        found.add(claim.parent)
        claim = by_name[claim.parent]
    return found


@given(claim_lists())
@pytest.mark.case("greptime 63")
def test_given_any_records_then_two_holders_conflict_only_within_a_family(
    claims: list[LockClaim],
) -> None:
    blocked = holders(claims)

    holding = [claim for claim in claims if not blocked[claim.procedure]]
    for one, other in combinations(holding, 2):
        family = one.procedure in elders(other, claims)
        roots = {min(elders(claim, claims) | {claim.procedure}) for claim in (one, other)}
        assert family or not conflict(one, other) or len(roots) == 1


@given(claim_lists().flatmap(lambda claims: st.tuples(st.just(claims), st.permutations(claims))))
def test_given_the_same_records_in_any_order_then_the_same_holders(
    both: tuple[list[LockClaim], list[LockClaim]],
) -> None:
    claims, shuffled = both

    assert holders(shuffled) == holders(claims)


@given(claim_lists())
def test_given_any_records_then_nobody_waits_for_a_younger_one_and_somebody_goes_on(
    claims: list[LockClaim],
) -> None:
    blocked = holders(claims)
    age = {claim.procedure: claim.submission for claim in claims}

    assert all(age[b.by] < age[name] for name, blocks in blocked.items() for b in blocks)
    assert not claims or any(not blocks for blocks in blocked.values())


@given(claim_lists())
@pytest.mark.case("online 74")
def test_given_strangers_when_one_waits_then_a_younger_one_does_not_overtake_it(
    claims: list[LockClaim],
) -> None:
    alone = [LockClaim(c.procedure, c.submission, c.locks) for c in claims]
    blocked = holders(alone)

    for older, younger in combinations(alone, 2):
        if conflict(older, younger):
            assert older.procedure in {block.by for block in blocked[younger.procedure]}


@pytest.mark.case("greptime 49")
def test_given_a_child_whose_parent_holds_its_lock_then_it_runs_under_it() -> None:
    parent = LockClaim("p", 1, (exclusive("route:1"),))
    child = LockClaim("c", 2, (shared("route:1"),), parent="p")

    assert holders([parent, child]) == {"p": (), "c": ()}


def test_given_two_children_under_one_lock_then_they_exclude_each_other() -> None:
    parent = LockClaim("p", 1, (exclusive("route:1"),))
    first = LockClaim("a", 2, (exclusive("route:1"),), parent="p")
    second = LockClaim("b", 3, (exclusive("route:1"),), parent="p")

    blocked = holders([parent, first, second])

    assert not blocked["a"]
    assert [block.by for block in blocked["b"]] == ["a"]


def test_given_a_stranger_that_waits_for_the_parent_then_the_child_does_not_queue_behind_it() -> (
    None
):
    """An undrop holds the route; a failover of the same region waits for it; then comes its
    child. Were the child to queue, nobody would ever go on."""
    region = region_key(str(7 << 32))
    undrop = LockClaim("undrop", 1, (exclusive(route_key(7)),))
    stranger = LockClaim("failover", 2, (shared(route_key(7)), exclusive(region)))
    child = LockClaim("child", 3, (shared(route_key(7)), exclusive(region)), parent="undrop")

    blocked = holders([undrop, stranger, child])

    assert not blocked["child"]
    assert {block.by for block in blocked["failover"]} == {"undrop"}


def test_given_a_parent_that_waits_then_its_child_waits_with_it() -> None:
    first = LockClaim("x", 1, (exclusive("route:1"),))
    parent = LockClaim("p", 2, (exclusive("route:1"),))
    child = LockClaim("c", 3, (exclusive("route:1"),), parent="p")

    assert {block.by for block in holders([first, parent, child])["c"]} == {"p"}


def test_given_a_record_that_turns_up_late_then_it_waits_for_what_runs_already() -> None:
    table = LockTable()
    table.add(LockClaim("runs", 2, (exclusive("table:1"),)))

    table.add(LockClaim("late", 1, (exclusive("table:1"),)))

    assert not table.blocked("runs")
    assert [block.by for block in table.blocked("late")] == ["runs"]


# Who overtakes ----------------------------------------------------------------------------------

ALTER = (exclusive(table_key(7)),)
DROP = (exclusive(table_key(7)), exclusive(route_key(7)))
FAILOVER = (shared(route_key(7)), exclusive(region_key(str(7 << 32))))


def claimed(table: LockTable, name: str, submission: int, *locks: Lock) -> LockClaim:
    claim = LockClaim(name, submission, locks, overtakes=table.overtaken_by(locks, {}))
    table.add(claim)
    return claim


def test_given_a_drop_that_waits_for_a_reorg_when_a_failover_comes_then_it_does_not_wait() -> None:
    """P2: an hour of reorg never delays a failover; and nobody loses what it holds."""
    table = LockTable()
    reorg = claimed(table, "reorg", 1, *ALTER)
    drop = claimed(table, "drop", 2, *DROP)

    first = claimed(table, "first", 3, *FAILOVER)
    table.remove("reorg")
    second = claimed(table, "second", 4, *FAILOVER)

    overtaken = [set(one.overtakes) for one in (reorg, first, second)]
    assert overtaken == [set(), {"drop"}, set()]
    assert not table.blocked("first")
    assert {block.by for block in table.blocked("drop")} == {"first"}
    assert {block.by for block in table.blocked("second")} == {"first", "drop"}
    assert holders([second, drop, first]) == holders([drop, first, second])
    assert not holders([drop, first])["first"]  # as the next leader computes it
    table.remove("first")
    assert not table.blocked("drop")


def test_given_a_drop_that_holds_or_waits_for_the_route_then_a_failover_stands_in_line() -> None:
    table = LockTable()
    claimed(table, "drop", 1, *DROP)
    claimed(table, "again", 2, exclusive(table_key(8)), exclusive(route_key(7)))

    failover = claimed(table, "failover", 3, *FAILOVER)

    assert not failover.overtakes
    assert {block.by for block in table.blocked("failover")} == {"drop", "again"}


STEPS = st.lists(st.one_of(SETS, st.integers(0, 9)), max_size=24)


@given(STEPS)
def test_given_claims_that_come_and_go_then_who_holds_keeps_it_and_the_records_alone_tell(
    steps: list[dict[str, Callable[[str], Lock]] | int],
) -> None:
    """The holders that a leader keeps up to date are those that the next one computes; no grant is
    ever taken back; while there is any procedure, one holds everything that it needs."""
    table = LockTable()
    holding: list[str] = []

    for number, step in enumerate(steps):
        if isinstance(step, int):
            if holding:
                table.remove(holding.pop(step % len(holding)))
        else:
            wanted = dict(step)
            if "region:4294967296" in wanted:
                wanted.setdefault("route:1", shared)
            claimed(table, f"p{number}", number, *(wanted[k](k) for k in KEYS if k in wanted))

        settle(table)
        now = {name: table.blocked(name) for name in table.claims}
        assert all(table.holds(name) == (not blocks) for name, blocks in now.items())
        assert all(not now[name] for name in holding)
        holding = [name for name, blocks in now.items() if not blocks]
        assert holding or not now
        scratch = holders(table.claims.values())
        assert {n: set(b) for n, b in scratch.items()} == {n: set(b) for n, b in now.items()}


@given(claim_lists(), SETS)
def test_given_any_claims_when_a_new_one_asks_then_it_is_told_of_each_that_it_cannot_share_with(
    claims: list[LockClaim], wanted: dict[str, Callable[[str], Lock]]
) -> None:
    table = LockTable()
    for claim in claims:
        table.add(claim)
    new = LockClaim("new", len(claims), tuple(make(key) for key, make in wanted.items()))

    told = table.conflicts(new.locks)

    assert list(dict.fromkeys(name for name, _ in told)) == [
        claim.procedure for claim in claims if conflict(claim, new)
    ]
    assert set(told) == {
        (claim.procedure, lock.key)
        for claim in claims
        for lock in new.locks
        if conflict(claim, LockClaim("one", 0, (lock,)))
    }


def settle(table: LockTable) -> None:
    while table.is_due:
        table.look_again(100)


def test_given_1000_claims_when_they_end_one_by_one_then_each_change_looks_at_few() -> None:
    """A queue of a thousand must not cost a thousand looks at a thousand."""
    table = LockTable()
    shared_by_all = (shared("catalog:main"), shared("schema:main.public"))
    for number in range(1_000):
        lock = exclusive(table_key(number // 4))
        table.add(LockClaim(f"p{number}", number, (*shared_by_all, lock)))
    for number in range(1_000):
        assert table.holds(f"p{number}")
        table.remove(f"p{number}")
        settle(table)

    assert table.looks <= 2_000


WAITERS = 10_000


@pytest.mark.slow
@pytest.mark.parametrize("cancelled", [0, 3])
def test_given_10000_waiters_on_one_key_when_holders_end_then_only_the_next_is_looked_at(
    cancelled: int,
) -> None:
    """*cancelled*: of every four, so many of the middle of the line go first."""
    table = LockTable()
    for number in range(WAITERS):
        table.add(
            LockClaim(f"p{number}", number, (shared("catalog:main"), exclusive(table_key(1))))
        )
    added = table.looks
    for number in range(1, WAITERS):
        if number % 4 < cancelled:
            table.remove(f"p{number}")
            settle(table)
    left = sorted(table.claims.values(), key=lambda claim: claim.submission)
    for claim in left:
        assert table.holds(claim.procedure)
        table.remove(claim.procedure)
        assert len(table._due) <= 1
        settle(table)

    assert added <= WAITERS
    assert table.looks <= 2 * WAITERS


def test_given_10000_that_share_when_the_one_before_them_ends_then_they_are_found_in_slices() -> (
    None
):
    table = LockTable()
    table.add(LockClaim("drop", 0, (exclusive("schema:main.public"),)))
    for number in range(1, WAITERS):
        table.add(LockClaim(f"p{number}", number, (shared("schema:main.public"),)))
    table.remove("drop")

    before, found = table.looks, 0
    first = table.look_again(100)
    while table.is_due:
        assert table.looks - before <= 100
        before, found = table.looks, found + len(table.look_again(100))

    assert first == {f"p{number}" for number in range(1, 101)}
    assert len(first) + found == WAITERS - 1
    assert all(table.holds(procedure) for procedure in table.claims)


def test_given_a_claim_that_lets_go_of_some_locks_then_it_keeps_its_place_on_the_others() -> None:
    """A poison lets go of the placement side: who waits for the schema side still waits."""
    table = LockTable()
    drop = LockClaim("drop", 1, DROP)
    table.add(drop)
    table.add(LockClaim("alter", 2, ALTER))
    table.add(LockClaim("failover", 3, FAILOVER))

    table.replace(replace(drop, locks=ALTER))
    settle(table)

    held = {name: table.holds(name) for name in table.claims}
    assert held == {"drop": True, "alter": False, "failover": True}
    assert {n: set(b) for n, b in holders(table.claims.values()).items()} == {
        name: set(table.blocked(name)) for name in table.claims
    }
    table.replace(drop)  # its undo goes on: not before whoever got the placement side meanwhile
    settle(table)
    held = {name: table.holds(name) for name in table.claims}
    assert held == {"drop": False, "alter": False, "failover": True}
    table.remove("failover")
    settle(table)
    assert {name: table.holds(name) for name in table.claims} == {"drop": True, "alter": False}


@pytest.mark.case("greptime 55")
def test_given_a_key_twice_then_the_stronger_mode_is_taken() -> None:
    found = distinct(exclusive("a"), shared("a"), shared("b"), exclusive("b"))

    assert {lock.key: lock.mode for lock in found} == {
        "a": LockMode.EXCLUSIVE,
        "b": LockMode.EXCLUSIVE,
    }


def test_given_changes_of_the_schema_side_alone_then_a_failover_never_waits_for_them() -> None:
    alone = {"create_schema", "drop_schema", "rename_table", "alter_table"}
    placed = {"failover_table"}
    schema = [locks_of(name) for name in alone]
    moves = [locks_of(name) for name in placed]

    for number, move in enumerate(moves):
        claims = [LockClaim(f"s{n}", n, locks) for n, locks in enumerate(schema)]
        failover = LockClaim("f", 100 + number, move)
        assert not holders([*claims, failover])["f"]
        assert all(lock.key.split(":")[0] in PLACEMENT for lock in move)


def locks_of(name: str) -> tuple[Lock, ...]:
    scenario = next(one for one in SCENARIOS if one.kind == name)
    return KINDS[name].locks(scenario.state)
