"""The graph of states (`metasrv_base.elements`) of each kind of stored element."""

from collections.abc import Mapping
from typing import TypeAlias

from keys.model.tables import Column, Constraint, ConstraintKind, Index
from metasrv_base.elements.graph import Graph
from metasrv_base.elements.graphs import (
    CHANGED_COLUMN,
    CHECK_CONSTRAINT,
    INDEX,
    NOT_NULL,
    OPTIONAL_COLUMN,
    REPLACED_COLUMN,
    REQUIRED_COLUMN,
    TYPE_CHANGE,
    UNIQUE_CONSTRAINT,
    UNIQUE_INDEX,
)

Element: TypeAlias = Column | Index | Constraint

_CONSTRAINTS: Mapping[ConstraintKind, Graph] = {
    ConstraintKind.NOT_NULL: NOT_NULL,
    ConstraintKind.CHECK: CHECK_CONSTRAINT,
    ConstraintKind.UNIQUE: UNIQUE_CONSTRAINT,
}


STORED_GRAPHS: tuple[Graph, ...] = (
    INDEX,
    UNIQUE_INDEX,
    OPTIONAL_COLUMN,
    REQUIRED_COLUMN,
    *TYPE_CHANGE,
    *_CONSTRAINTS.values(),
)
"""Every graph that `graph_of` can name."""


def graph_of(element: Element) -> Graph:
    """The graph of an element as it is stored."""
    match element:
        case Index():
            return UNIQUE_INDEX if element.unique else INDEX
        case Constraint():
            return _CONSTRAINTS[element.kind]
        case Column() if element.replaces is not None:
            return CHANGED_COLUMN
        case Column() if element.replaced_by is not None:
            return REPLACED_COLUMN
        case Column():
            says_nothing = element.default is None and element.origin_default is None
            return OPTIONAL_COLUMN if element.nullable and says_nothing else REQUIRED_COLUMN
