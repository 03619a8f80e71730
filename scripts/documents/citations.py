"""Rules that files cite by number or by name, looked up in this checkout.

P, G, I and S are rules of four pages; `decisions/NNNN` is a decision record. Names of documents
that lie outside the checkout are faults wherever they stand: readers cannot follow them.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from scripts.documents.references import PACKAGES

FOLDERS = (*PACKAGES, "scripts", "benchmarks", "tests", "docs", "docker")
SUFFIXES = (".py", ".md", ".toml", ".yaml", ".sh")

# Letter -> the page that defines its rules, and how a definition begins.
PAGES: Mapping[str, tuple[str, str]] = {
    "P": ("docs/protocols.md", r"^###? (P\d(?:\.\d{1,2})?)\b"),
    "G": ("docs/guarantees.md", r"^\| (G\d{1,2}) \|"),
    "I": ("docs/invariants.md", r"^\*\*(I\d{1,2})\.\*\*"),
    "S": ("docs/style.md", r"^\| (S\d{1,2}) \|"),
}
_RULE = re.compile(r"(?<![\w./-])([PGIS]\d{1,2}(?:\.\d{1,2})?)(?![\w-])")
_DECISION = re.compile(r"decisions/(\d{4})(-[\w-]+\.md)?")
_PAGE = re.compile(r"(?<![\w/.])docs/[\w./-]+\.md\b")
# No pattern matches its own text.
_OUTSIDE = re.compile(
    r"\bPROTOCOL[S]\b|\bGUARANTEE[S]\b|\b(?:DESIG[N]|STYL[E]|SEED[S])(?:\.md\b|,? \d)"
    r"|\bAPI\.m[d]\b|(?<![\w/])researc[h]/|\.\./share[d]\b|(?<![\w/])review[s]/"
)


class Rules:
    """The rules that *root*, a checkout, defines."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def names(self) -> frozenset[str]:
        """`P1`, `P1.2`, `G1`, `I1`, `S1` and so on."""
        pages = (self.defined(page, pattern) for page, pattern in PAGES.values())
        return frozenset(name for names in pages for name in names)

    @cached_property
    def decisions(self) -> frozenset[str]:
        """The records, by name of file."""
        return frozenset(path.name for path in (self.root / "docs/decisions").glob("*.md"))

    def defined(self, page: str, pattern: str) -> list[str]:
        """The rules that *page* defines, in its order."""
        return re.findall(pattern, (self.root / page).read_text(), re.MULTILINE)

    def missing(self, text: str) -> list[str]:
        """The citations of *text* that lead nowhere, kind by kind."""
        return list(self._missing(text))

    def _missing(self, text: str) -> Iterator[str]:
        yield from _OUTSIDE.findall(text)
        yield from (rule for rule in _RULE.findall(text) if rule not in self.names)
        for number, rest in _DECISION.findall(text):
            stem = f"{number}{rest or '-'}"
            if not any(name.startswith(stem) for name in self.decisions):
                yield f"decisions/{number}{rest}"
        yield from (page for page in _PAGE.findall(text) if not (self.root / page).exists())


def cited_files(root: Path) -> list[Path]:
    """Every text file of the checkout in which a person may cite something."""
    inner = (path for folder in FOLDERS for path in (root / folder).rglob("*"))
    files = (*root.glob("*.md"), *root.glob("*.toml"), root / "Makefile", *inner)
    return sorted(f for f in files if f.name == "Makefile" or f.suffix in SUFFIXES)
