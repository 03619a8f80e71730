"""Declared names and the names that are there: which is which, with declared renames only. Pure.

A rename counts while the earlier name is there and the new one is not, so that a file that keeps
it means the same after the rename.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Renamable(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def renamed_from(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Matched:
    """The declared names, each with the name that it has now."""

    current: Mapping[str, str]
    """Declared name -> current name; a declared name that is missing here is new."""
    faults: tuple[tuple[int, str], ...]
    """Position of a declared object, and why it cannot be told which one it is."""

    @property
    def renames(self) -> dict[str, str]:
        """Current name -> declared name, where they differ, in an order in which each new name is
        free."""
        left = {now: name for name, now in self.current.items() if now != name}
        ordered: dict[str, str] = {}
        while left:
            now = next(now for now, name in left.items() if name not in left)
            ordered[now] = left.pop(now)
        return ordered

    @property
    def taken(self) -> set[str]:
        """Current names that are declared, under whatever name."""
        return set(self.current.values())


def matched(current: Collection[str], declared: Sequence[Renamable]) -> Matched:
    claims = _claims(current, declared)
    names = {each.name for each in declared}
    claimed = set(claims.values())
    pairs = {name: name for name in names if name in current and name not in claimed}
    return Matched({**pairs, **claims}, tuple(_faults(current, declared, claims, names)))


def _claims(current: Collection[str], declared: Sequence[Renamable]) -> dict[str, str]:
    """Declared name -> earlier name. The name that one rename frees may be taken by another."""
    claims: dict[str, str] = {}
    while True:
        gone = set(claims.values())
        following = next(
            (
                each
                for each in declared
                if each.renamed_from is not None
                and each.name not in claims
                and each.renamed_from in current
                and each.renamed_from not in gone
                and (each.name not in current or each.name in gone)
            ),
            None,
        )
        if following is None:
            return claims
        assert following.renamed_from is not None
        claims[following.name] = following.renamed_from


def _faults(
    current: Collection[str],
    declared: Sequence[Renamable],
    claims: Mapping[str, str],
    names: Collection[str],
) -> Iterator[tuple[int, str]]:
    by_earlier = {earlier: name for name, earlier in claims.items()}
    for position, each in enumerate(declared):
        earlier = each.renamed_from
        if earlier is None or each.name in claims or earlier not in current:
            continue
        if earlier in by_earlier:
            yield position, f"{earlier} is renamed to {by_earlier[earlier]} already"
        elif earlier not in names:
            yield position, f"{earlier} and {each.name} are both there: drop one, or declare both"
