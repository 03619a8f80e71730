"""Tables as text: aligned, without broken words, and no wider than they must be."""

from hypothesis import given
from hypothesis import strategies as st

from metasrv.cli.columns import columns_of, printable, record_lines, table_lines, that_fit

WORDS = st.lists(st.text("abé漢", min_size=1, max_size=12), min_size=1, max_size=6).map(" ".join)
TABLES = st.integers(1, 5).flatmap(
    lambda count: st.tuples(
        st.lists(st.text("xyz", min_size=1, max_size=9), min_size=count, max_size=count),
        st.lists(st.lists(WORDS, min_size=count, max_size=count), max_size=4),
    )
)
NODES = (("dn-1", "alive", "http://127.0.0.1:30584"), ("dn-12", "dead", "-"))


def test_given_no_limit_then_columns_are_aligned_and_nothing_is_padded() -> None:
    assert list(table_lines(("node", "state", "address"), NODES, None)) == [
        "node   state  address",
        "dn-1   alive  http://127.0.0.1:30584",
        "dn-12  dead   -",
    ]


def test_given_a_terminal_that_is_narrow_then_the_widest_cells_wrap_between_words() -> None:
    rows = (("by_carrier", "waits for schema_lease of fe-1"),)

    assert list(table_lines(("index", "state"), rows, 30)) == [
        "index       state",
        "by_carrier  waits for",
        "            schema_lease of",
        "            fe-1",
    ]


def test_given_a_long_heading_then_it_wraps_too() -> None:
    rows = (("7", "29 ms"), ("8", "3 ms"))

    assert list(table_lines(("schema", "drained after"), rows, 16)) == [
        "schema  drained",
        "        after",
        "7       29 ms",
        "8       3 ms",
    ]


def test_given_optional_columns_then_a_narrow_terminal_shows_no_more_of_them_than_fit() -> None:
    head, optional = ("node", "state", "address"), ("state", "address")

    shown = {
        width: [head[number] for number in that_fit(head, NODES, width, optional)]
        for width in (None, 36, 35, 28, 4)
    }

    assert shown == {
        None: ["node", "state", "address"],
        36: ["node", "state", "address"],
        35: ["node", "address"],
        28: ["node"],
        4: ["node", "state", "address"],
    }


def test_given_words_that_do_not_fit_side_by_side_then_each_row_is_a_record() -> None:
    assert list(table_lines(("node", "state", "address"), NODES, 25)) == [
        "node     dn-1",
        "state    alive",
        "address  http://127.0.0.1:30584",
        "",
        "node     dn-12",
        "state    dead",
        "address  -",
    ]


@given(TABLES, st.integers(20, 80))
def test_given_any_table_then_no_word_is_broken_and_only_a_long_word_is_too_wide(
    table: tuple[list[str], list[list[str]]], width: int
) -> None:
    head, rows = table

    lines = list(table_lines(head, rows, width))

    words = [word for row in rows for cell in row for word in cell.split()]
    shown = [word for line in lines for word in line.split()]
    assert all(shown.count(word) >= words.count(word) for word in words)
    margin = max(map(columns_of, head)) + 2
    longest = max(map(columns_of, words), default=0)
    assert all(columns_of(line) <= max(width, margin + longest) for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_given_a_value_with_control_characters_then_they_are_escaped() -> None:
    assert printable("a\x1b[2J\nb") == "a\\x1b[2J\\nb"


def test_given_a_record_without_columns_then_it_has_no_lines() -> None:
    assert list(record_lines((), [], 80)) == []
