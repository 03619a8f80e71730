"""Words that an option takes from a fixed list: the near one is suggested, all are shown."""

from collections.abc import Sequence
from difflib import get_close_matches

import typer


def must_be_among(word: str, known: Sequence[str], option: str, what: str) -> None:
    """Raises BadParameter for a word that is not *known*."""
    if word in known:
        return
    close = get_close_matches(word, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise typer.BadParameter(f"{option}: there is no {what} {word}; {hint}All: {' '.join(known)}")
