"""Every row of the founding documents has what its status demands."""

from pathlib import Path

import pytest

from scripts.documents.references import Checkout, missing
from scripts.documents.seeds import ROWS_MIN, ROWS_PER_TEST_MAX, faults_of, rows_of, summary_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "seeds.md"
TEST = "`tests/docs/test_seeds.py::test_given_the_page_then_every_row_is_in_order`"


def test_given_the_page_then_every_row_is_in_order() -> None:
    assert faults_of(rows_of(PAGE.read_text())) == []


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        (f"done | `keys/commit/txn.py` | {TEST}", "no such status"),
        ("works | `keys/commit/txn.py` | —", "no test shows it"),
        ("works | `keys/commit/txn.py` | `tests/docs/test_seeds.py`", "no test shows it"),
        (f"works | — | {TEST}", "does not say where"),
        (f"changed | `keys/commit/txn.py` | {TEST}", "no decision record"),
        ("changed | `keys/commit/txn.py` | [0003](decisions/0003-one-leader.md)", "no test shows"),
        (f"part | `keys/commit/txn.py` | {TEST}", "what is missing"),
        ("part | `keys/commit/txn.py` | missing: the rest", "no test shows it"),
        ("not built | — | —", "what would build it"),
    ],
)
def test_given_a_row_that_lacks_something_then_it_is_named(cells: str, fault: str) -> None:
    (found,) = [f for f in faults_of(rows_of(f"| 000-01 | words | {cells} |")) if "000-01" in f]

    assert fault in found


def test_given_a_row_that_is_missing_then_its_document_is_named() -> None:
    rows = rows_of(PAGE.read_text())

    for seed in ROWS_MIN:
        left = [row for row in rows if row.name != f"{seed}-02"]
        assert [fault[:3] for fault in faults_of(left)] == [seed]


def test_given_a_test_that_stands_for_many_rows_then_it_is_named() -> None:
    row = f"| 000-01 | words | works | `keys/commit/txn.py` | {TEST} |\n"

    at_most = faults_of(rows_of(row * ROWS_PER_TEST_MAX))
    one_more = faults_of(rows_of(row * (ROWS_PER_TEST_MAX + 1)))

    assert not [fault for fault in at_most if "stands for" in fault]
    assert len([fault for fault in one_more if "stands for 4 rows" in fault]) == 1


def test_given_the_page_then_its_first_table_counts_its_rows() -> None:
    page = PAGE.read_text()

    for line in summary_of(rows_of(page)):
        assert line in page


def test_given_a_row_with_other_cells_then_it_does_not_pass_unseen() -> None:
    with pytest.raises(ValueError, match="1 rows"):
        rows_of("| 000-01 | words | works | where |")


def test_given_a_row_whose_test_does_not_exist_then_it_is_missing(tmp_path: Path) -> None:
    page = tmp_path / "seeds.md"
    page.write_text(f"| 000-01 | words | works | `keys/commit/txn.py` | {TEST[:-1]}_nowhere` |")

    assert missing(page, Checkout(ROOT)) == [f"{TEST[1:-1]}_nowhere"]
