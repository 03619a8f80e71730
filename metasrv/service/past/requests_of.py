"""Versions of the log put together by the request that made them. Pure.

A request's versions need not stand in a row. They are one change as long as fewer than GAP versions
of others stand between two of them, which the log alone decides: what a page says does not depend
on where the page begins.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from keys.catalog.log.update_heads import UpdateHead

GAP = 1_024
VERSIONS_MAX = 4_096
"""Versions of one change that are compared and counted: the newest of them."""


@dataclass(slots=True)
class HeadGroup:
    """Versions of one request, in order."""

    root: str | None
    """The procedure that the request made; None: the bootstrap."""
    heads: list[UpdateHead]

    @property
    def version(self) -> int:
        return self.heads[-1].version

    @property
    def newest(self) -> Sequence[UpdateHead]:
        """The newest VERSIONS_MAX versions of the request."""
        return self.heads[-VERSIONS_MAX:]

    def may_be(self, by: str | None, table_id: int | None) -> bool:
        """Whether the change may be by *by* and of *table_id* (None: any); its updates decide."""
        newest = self.newest
        if by is not None and newest[0].by != by:
            return False
        return table_id is None or any(
            head.table_ids is None or table_id in head.table_ids for head in newest
        )


def put_together(heads: Sequence[UpdateHead], *, transitions: bool) -> list[HeadGroup]:
    """Groups versions by request; returns the groups by their last versions, newest first.

    *heads*: of versions in a row. *transitions*: each version is a group of its own.
    """
    if transitions:
        return [HeadGroup(head.procedure, [head]) for head in reversed(heads)]
    parents = {
        head.procedure: head.parent
        for head in heads
        if head.procedure is not None and head.parent is not None
    }
    groups = list[HeadGroup]()
    latest: dict[str, HeadGroup] = {}
    for head in heads:
        root = _root(head.procedure, parents)
        group = None if root is None else latest.get(root)
        if group is not None and head.version - group.version <= GAP:
            group.heads.append(head)
            continue
        groups.append(group := HeadGroup(root, [head]))
        if root is not None:
            latest[root] = group
    return sorted(groups, key=lambda group: group.version, reverse=True)


def _root(procedure: str | None, parents: Mapping[str, str]) -> str | None:
    """The procedure that the client's request made, as far as the heads tell."""
    while procedure is not None and procedure in parents:
        procedure = parents[procedure]
    return procedure


def closed(groups: Iterable[HeadGroup], low: int, floor: int) -> list[HeadGroup]:
    """Returns the groups to which no version at or below *low* can belong, up to the first of which
    that is not known. *floor*: no version at or below it is there."""
    whole = list[HeadGroup]()
    for group in groups:
        if low > floor and group.heads[0].version - low <= GAP:
            break
        whole.append(group)
    return whole
