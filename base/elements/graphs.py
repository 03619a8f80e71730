"""The kinds of schema element there are, and what each does in each of its states."""

from collections.abc import Mapping

from base.elements.graph import Act, Behaviour, Graph, Holds, Path, Reorg
from base.elements.states import ElementState

ABSENT, DELETE_ONLY, WRITE_ONLY, PUBLIC = ElementState

CHECK, REMOVE, KEEP, PUT, FILL = Act

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

TABLE = Graph(
    name="table",
    holds=Holds.ROWS,
    behaviours=_TABLE,
    add=DIRECT,
    drop=LONG[::-1],
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
        NOT_NULL,
        CHECK_CONSTRAINT,
        UNIQUE_CONSTRAINT,
        TABLE,
        REFERRED_TABLE,
    )
}
