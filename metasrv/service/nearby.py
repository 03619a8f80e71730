"""The name that was perhaps meant: its cost is bounded by what was asked, not by what there is."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from string import ascii_letters, digits

COMPARED_MAX = 200  # names that are compared one by one; of more, only one edit away is looked up
_LETTERS = ascii_letters + digits + "_-"


def nearest(name: str, names: Collection[str]) -> str | None:
    """Returns another of *names* that comes close, if any does. *names* answers `in` in constant
    time."""
    if len(names) <= COMPARED_MAX:
        close = get_close_matches(name, [other for other in names if other != name], n=1)
        return close[0] if close else None
    return next((other for other in _one_edit_away(name) if other != name and other in names), None)


def hint(name: str, names: Collection[str]) -> dict[str, str]:
    """`did_you_mean` among the facts of an error, or nothing."""
    close = nearest(name, names)
    return {} if close is None else {"did_you_mean": close}


def _one_edit_away(name: str) -> Iterator[str]:
    """Swapped, left out, mistaken, added: what fingers do, most usual first."""
    yield name.lower()
    cuts = [(name[:position], name[position:]) for position in range(len(name) + 1)]
    yield from (before + after[1] + after[0] + after[2:] for before, after in cuts if after[1:])
    yield from (before + after[1:] for before, after in cuts if after)
    for letter in _LETTERS:
        yield from (before + letter + after[1:] for before, after in cuts if after)
        yield from (before + letter + after for before, after in cuts)
