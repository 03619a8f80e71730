"""The seams at which mistakes are planted, and whether the code still comes to each.

A patch of a name that nobody looks up any more changes nothing, and a mistake that is not found in
any life looks like a sound program.
"""

import inspect
from collections.abc import Callable
from typing import Any

from keys.store.kv import Request
from tests.crash.enumeration import Patch

ALTER = "a request to the store"


def seam_of(patch: Patch) -> str:
    where, name, _ = patch
    inside: str = getattr(where, "__qualname__", "") or getattr(where, "__name__", "")
    return f"{inside}.{name}"


def held(where: object, name: str) -> Any:
    """As it stands there: a property of a class is not asked for its value. Raises KeyError."""
    return vars(where)[name]


def watched(patch: Patch, reached: set[str]) -> Patch:
    """Puts the seam's name into *reached* when the code comes to it."""
    where, name, planted = patch
    seam = seam_of(patch)

    def watching(does: Callable[..., Any]) -> Callable[..., Any]:
        def told(*asked: Any, **named: Any) -> Any:
            reached.add(seam)
            return does(*asked, **named)

        return told

    if isinstance(planted, property):
        assert planted.fget is not None
        return where, name, property(watching(planted.fget))
    assert callable(planted), f"{seam} is neither called nor asked for"
    return where, name, watching(planted)


def alters(alter: Callable[[Request], Request], reached: set[str]) -> Callable[[Request], Request]:
    """*alter*, whose seam is reached when it has changed a request."""

    def told(request: Request) -> Request:
        changed = alter(request)
        if changed != request:
            reached.add(ALTER)
        return changed

    return told


def fits(patch: Patch) -> bool:
    """Whether what is planted can be called as what stands there: with its positional parameters,
    and its named ones by their names."""
    where, name, planted = patch
    given = inspect.signature(_function(held(where, name))).parameters.values()
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    try:
        inspect.signature(_function(planted)).bind(
            *(one for one in given if one.kind not in named),
            **{one.name: one for one in given if one.kind is inspect.Parameter.KEYWORD_ONLY},
        )
    except TypeError:
        return False
    return True


def _function(found: Any) -> Any:
    return found.fget if isinstance(found, property) else found
