"""A page by an index over many regions: the next entries of all, and few that are not shown."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dataplane.frontend.statements.entry_merge import EntryMerge

Regions = Sequence[Sequence[bytes]]


class Asked:
    """Regions that answer as a node does: at most so many rows, and perhaps fewer."""

    def __init__(self, regions: Regions, cut_at: int = 10**6) -> None:
        self.regions, self.cut_at = [sorted(entries) for entries in regions], cut_at
        self.rows = 0

    def page(self, first: bytes, limit: int) -> tuple[list[bytes], bytes | None]:
        merge = EntryMerge(range(len(self.regions)), first, limit)
        while shares := merge.wanted():
            for share in shares:
                found = [one for one in self.regions[share.number] if one >= share.key]
                part = found[: min(share.rows, self.cut_at)]
                self.rows += len(part)
                table = pa.table({"_entry": pa.array(part, pa.binary())})
                merge.filled(share, table, is_last=len(part) == len(found))
            merge.take()
        shown = [key for part in merge.taken for key in part.column("_entry").to_pylist()]
        return shown, merge.following


@given(
    st.dictionaries(st.binary(max_size=2), st.integers(0, 3)),
    st.integers(1, 9),
    st.integers(1, 3),
)
def test_given_entries_in_regions_when_read_in_pages_then_each_comes_once_in_order(
    entries: Mapping[bytes, int], limit: int, cut_at: int
) -> None:
    regions = [[key for key, number in entries.items() if number == one] for one in range(4)]
    asked, found, first = Asked(regions, cut_at), list[bytes](), b""

    while True:
        page, following = asked.page(first, limit)
        found += page
        assert len(page) <= limit
        if following is None:
            break
        assert page, "a page that goes on has rows"
        first = following

    assert found == sorted(entries)


def test_given_entries_in_turns_when_a_page_is_read_then_few_rows_are_not_shown() -> None:
    asked = Asked([[b"%06d" % (16 * n + one) for n in range(1_000)] for one in range(16)])

    page, _ = asked.page(b"", 1_000)

    assert len(page) == 1_000
    assert asked.rows <= 2_100


def test_given_one_region_with_all_the_next_when_a_page_is_read_then_it_is_asked_few_times() -> (
    None
):
    asked = Asked([[b"%06d" % (1_000 * one + n) for n in range(1_000)] for one in range(16)])

    page, following = asked.page(b"", 1_000)

    assert page == [b"%06d" % n for n in range(1_000)]
    assert following is not None
    assert asked.rows <= 3_000
