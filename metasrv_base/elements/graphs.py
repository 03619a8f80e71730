"""The kinds of schema element there are, and what each does in each of its states."""

from collections.abc import Mapping

from metasrv_base.elements.graph import Act, Behaviour, Graph, Holds, Path, Reorg
from metasrv_base.elements.states import ElementState

ABSENT, DELETE_ONLY, WRITE_ONLY, PUBLIC = ElementState

CHECK, REMOVE, KEEP, PUT, FILL, MIRROR = Act

LONG: Path = (ABSENT, DELETE_ONLY, WRITE_ONLY, PUBLIC)
SHORT: Path = (ABSENT, DELETE_ONLY, PUBLIC)
DIRECT: Path = (ABSENT, PUBLIC)
ENFORCED: Path = (ABSENT, WRITE_ONLY, PUBLIC)
"""A constraint stores nothing, so there is nothing that only deletes could see."""

_UNKNOWN = Behaviour()

INDEX = Graph(
    name="index",
    holds=Holds.ENTRIES,
    behaviours={
        ABSENT: _UNKNOWN,
        DELETE_ONLY: Behaviour(update=(REMOVE,), delete=(REMOVE,)),
        WRITE_ONLY: Behaviour(insert=(PUT,), update=(REMOVE, PUT), delete=(REMOVE,)),
        PUBLIC: Behaviour(insert=(PUT,), update=(REMOVE, PUT), delete=(REMOVE,), visible=True),
    },
    add=LONG,
    drop=LONG[::-1],
    reorg=Reorg.BACKFILL,
)

UNIQUE_INDEX = Graph(
    name="unique-index",
    holds=Holds.ENTRIES,
    behaviours={
        ABSENT: _UNKNOWN,
        DELETE_ONLY: Behaviour(update=(REMOVE,), delete=(REMOVE,)),
        WRITE_ONLY: Behaviour(insert=(CHECK, PUT), update=(CHECK, REMOVE, PUT), delete=(REMOVE,)),
        PUBLIC: Behaviour(
            insert=(CHECK, PUT), update=(CHECK, REMOVE, PUT), delete=(REMOVE,), visible=True
        ),
    },
    add=LONG,
    drop=LONG[::-1],
    reorg=Reorg.BACKFILL,
    unique=True,
)

_COLUMN: Mapping[ElementState, Behaviour] = {
    ABSENT: _UNKNOWN,
    DELETE_ONLY: Behaviour(update=(KEEP,), update_elsewhere=(KEEP,), delete=(REMOVE,)),
    WRITE_ONLY: Behaviour(
        insert=(FILL,), update=(KEEP, FILL), update_elsewhere=(KEEP, FILL), delete=(REMOVE,)
    ),
    PUBLIC: Behaviour(
        insert=(PUT,), update=(PUT,), update_elsewhere=(KEEP,), delete=(REMOVE,), visible=True
    ),
}

# Nullable, and null where nothing is said: a row without a value is a row with a null
# (docs/decisions/0081).
OPTIONAL_COLUMN = Graph(
    name="optional-column",
    holds=Holds.VALUES,
    behaviours=_COLUMN,
    add=SHORT,
    drop=LONG[::-1],
)

# Not nullable, or with a default.
REQUIRED_COLUMN = Graph(
    name="required-column",
    holds=Holds.VALUES,
    behaviours=_COLUMN,
    add=LONG,
    drop=LONG[::-1],
    reorg=Reorg.DEFAULT,
)

# Of another type, in the place of one that goes. A row without it reads as the conversion of what
# it has in that one: nobody stores it before it is public, and there is nothing that only deletes
# could see (docs/decisions/0097).
CHANGED_COLUMN = Graph(
    name="changed-column",
    holds=Holds.VALUES,
    behaviours={
        ABSENT: _UNKNOWN,
        WRITE_ONLY: Behaviour(insert=(CHECK,), update=(CHECK,)),
        PUBLIC: _COLUMN[PUBLIC],
    },
    add=ENFORCED,
    drop=ENFORCED[::-1],
    reorg=Reorg.VALIDATE,
    mirrors=True,
)

# The one that goes, maintained as long as anybody reads it.
REPLACED_COLUMN = Graph(
    name="replaced-column",
    holds=Holds.VALUES,
    behaviours={
        ABSENT: _UNKNOWN,
        WRITE_ONLY: Behaviour(
            insert=(MIRROR,), update=(MIRROR,), update_elsewhere=(KEEP,), delete=(REMOVE,)
        ),
        PUBLIC: _COLUMN[PUBLIC],
    },
    add=ENFORCED,
    drop=ENFORCED[::-1],
    mirrors=True,
    final=True,
)
TYPE_CHANGE = (CHANGED_COLUMN, REPLACED_COLUMN)
"""Graphs of a type change: one column is added and one dropped, both past no return in one
transaction."""

_CONSTRAINT: Mapping[ElementState, Behaviour] = {
    ABSENT: _UNKNOWN,
    WRITE_ONLY: Behaviour(insert=(CHECK,), update=(CHECK,)),
    PUBLIC: Behaviour(insert=(CHECK,), update=(CHECK,), visible=True),
}

NOT_NULL = Graph(
    name="not-null",
    holds=Holds.NOTHING,
    behaviours=_CONSTRAINT,
    add=ENFORCED,
    drop=ENFORCED[::-1],
    reorg=Reorg.VALIDATE,
)

CHECK_CONSTRAINT = Graph(
    name="check",
    holds=Holds.NOTHING,
    behaviours=_CONSTRAINT,
    add=ENFORCED,
    drop=ENFORCED[::-1],
    reorg=Reorg.VALIDATE,
)

# A promise over a unique index that is public already; the index has the keys.
UNIQUE_CONSTRAINT = Graph(
    name="unique",
    holds=Holds.NOTHING,
    behaviours=_CONSTRAINT,
    add=ENFORCED,
    drop=ENFORCED[::-1],
    reorg=Reorg.VALIDATE,
    unique=True,
)

_TABLE: Mapping[ElementState, Behaviour] = {
    ABSENT: _UNKNOWN,
    DELETE_ONLY: Behaviour(delete=(REMOVE,)),
    WRITE_ONLY: Behaviour(insert=(PUT,), update=(PUT,), update_elsewhere=(KEEP,), delete=(REMOVE,)),
    PUBLIC: Behaviour(
        insert=(PUT,), update=(PUT,), update_elsewhere=(KEEP,), delete=(REMOVE,), visible=True
    ),
}

# No statement on another table meets it, so that deletes alone would see it is no state of its own.
TABLE = Graph(
    name="table",
    holds=Holds.ROWS,
    behaviours={state: _TABLE[state] for state in (ABSENT, WRITE_ONLY, PUBLIC)},
    add=DIRECT,
    drop=(PUBLIC, WRITE_ONLY, ABSENT),
    alone=True,
)

# Its rows are removed with the rows of another table to which they belong: where it is not public,
# only such a statement meets it.
REFERRED_TABLE = Graph(
    name="referred-table",
    holds=Holds.ROWS,
    behaviours=_TABLE,
    add=SHORT,
    drop=LONG[::-1],
)

GRAPHS: Mapping[str, Graph] = {
    graph.name: graph
    for graph in (
        INDEX,
        UNIQUE_INDEX,
        OPTIONAL_COLUMN,
        REQUIRED_COLUMN,
        *TYPE_CHANGE,
        NOT_NULL,
        CHECK_CONSTRAINT,
        UNIQUE_CONSTRAINT,
        TABLE,
        REFERRED_TABLE,
    )
}
