"""The subjects of commits: short, without a full stop, and of one form. Part of `make check`.

Checked are the commits behind the one that added this file, so no commit is exempt by a list. A
shallow clone seems to add all files in its oldest commit: the commits behind that are checked. In a
folder without a repository nothing is.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SELF = "scripts/documents/subjects.py"
CHARS_MAX = 72
FORM = re.compile(r"(?P<part>[a-z][\w ,./-]*): \S.*|[A-Z].*")
"""`part: what`, or a sentence."""
NOT_IMPERATIVE = re.compile(r"[A-Za-z]*(?:ed|ing) ")
"""A first word such as `Added` or `Fixing`: a subject says what the commit does."""


def faults(subject: str) -> Iterator[str]:
    if len(subject) > CHARS_MAX:
        yield f"{len(subject)} characters, of {CHARS_MAX} at most"
    if subject.endswith("."):
        yield "a full stop at its end"
    form = FORM.fullmatch(subject)
    if form is None:
        yield "neither `part: what` nor a sentence"
    elif form["part"] is None and NOT_IMPERATIVE.match(subject):
        yield f"begins with {subject.split()[0]!r}, not with an imperative"


def faulty(subjects: Iterable[str]) -> Iterator[str]:
    """A line for each fault."""
    for subject in subjects:
        for fault in faults(subject):
            yield f"{subject!r}: {fault}"


def checked_subjects(root: Path) -> list[str]:
    """The newest first, without merges; none where git knows of no history."""
    added = _git(root, "log", "--diff-filter=A", "--format=%H", "--", SELF).split()
    if not added:
        return []
    return _git(root, "log", "--no-merges", "--format=%s", f"{added[-1]}..HEAD").splitlines()


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


if __name__ == "__main__":
    told = list(faulty(checked_subjects(ROOT)))
    print("\n".join(told))
    sys.exit(bool(told))
