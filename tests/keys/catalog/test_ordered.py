"""Names in order against a sorted set, whatever comes and goes; and what a change costs."""

from hypothesis import given
from hypothesis import strategies as st

from keys.catalog.ordered import CHUNK_MAX, Names

NAMES = [f"t_{number:05}" for number in range(CHUNK_MAX * CHUNK_MAX + CHUNK_MAX)]


@given(st.lists(st.text("abc", min_size=1, max_size=3)), st.text("abc", max_size=3))
def test_given_names_that_come_and_go_when_read_then_they_are_those_of_a_set_in_order(
    asked: list[str], low: str
) -> None:
    names, expected = Names(), set[str]()

    for name in asked:
        names = names.without(name) if name in expected else names.added(name)
        expected ^= {name}

    assert list(names) == sorted(expected)
    assert list(names.starting(low)) == sorted(name for name in expected if name >= low)
    assert len(names) == len(expected)


def test_given_many_names_in_any_order_when_all_are_added_and_removed_then_order_holds() -> None:
    for order in (NAMES, NAMES[::-1], NAMES[::2] + NAMES[1::2]):
        names = Names()
        for name in order:
            names = names.added(name)
        assert list(names) == NAMES
        assert all(0 < len(part) <= CHUNK_MAX for part in (*names.chunks, *names.groups))
        assert len(names.groups) > 1
        assert list(names.starting(NAMES[CHUNK_MAX])) == NAMES[CHUNK_MAX:]

        for name in order:
            names = names.without(name)
        assert names == Names()


def test_given_many_names_when_one_comes_then_all_chunks_but_its_own_are_shared() -> None:
    names = Names()
    for name in NAMES:
        names = names.added(name)

    after = names.added("t_00700x")

    before = {id(chunk) for chunk in names.chunks}
    assert sum(id(chunk) not in before for chunk in after.chunks) == 2  # it was full: two halves
