"""Every path, name, command and link that a document mentions exists in this checkout."""

from pathlib import Path

import pytest

from scripts.documents.references import Checkout, missing

ROOT = Path(__file__).parents[2]
CHECKOUT = Checkout(ROOT)
FOLDERS = ("docs", "docs/operate", "docs/procedures")
PAGES = [page for folder in FOLDERS for page in sorted((ROOT / folder).glob("*.md"))]
DOCUMENTS = [ROOT / "README.md", ROOT / "AGENTS.md", *PAGES]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_given_a_document_then_all_that_it_names_exists(document: Path) -> None:
    assert missing(document, CHECKOUT) == []


@pytest.mark.parametrize(
    "text",
    [
        "`keys/nowhere.py`",
        "`keys/commit/txn.py::nobody`",
        "`docs/decisions/9999-*.md`",
        "`procedures.engine.runner.nobody`",
        "`Runner.nobody`",
        "`txn.nobody`",
        "`gone.execute`",
        "`gone.py`",
        "`Nobody.commit`",
        "`make nothing`",
        "`.venv/bin/metasrv nothing`",
        "[a page](nowhere.md)",
        "[a heading](#nowhere)",
        '<img alt="" src="nowhere.svg">',
        "```mermaid\nflowchart LR\n  a[Runner.nobody]\n```",
        "```sh\nmake nothing\n```",
    ],
)
def test_given_a_name_of_nothing_when_looked_up_then_it_is_missing(
    text: str, tmp_path: Path
) -> None:
    document = tmp_path / "page.md"
    document.write_text(f"# A page\n\n{text}\n")

    assert len(missing(document, CHECKOUT)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "`keys/commit/txn.py`, `keys/` and `keys/commit/txn.py::Txn.on`",
        "`procedures/kinds/*.py`",
        "`procedures.engine.runner`, `procedures.engine.runner.Runner.store`, `Runner.store()`",
        "`holding.holders`",
        "`etcdctl get`, `asyncio.gather`, `pyarrow.dataset`, `__table_info/1024`, `/v1/tables`",
        "`make test`, `.venv/bin/metasrv doctor`",
        "[elsewhere](https://example.org/page), [a heading](https://example.org/page#head)",
        "[this page](#a-page)",
        "```mermaid\nflowchart LR\n  a[Runner.store]\n```",
        "```sh\nmake test\n```",
    ],
)
def test_given_a_name_of_something_when_looked_up_then_nothing_is_missing(
    text: str, tmp_path: Path
) -> None:
    document = tmp_path / "page.md"
    document.write_text(f"# A page\n\n{text}\n")

    assert missing(document, CHECKOUT) == []
