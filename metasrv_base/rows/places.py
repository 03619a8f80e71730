"""Places of rows in a request or a file, kept while parts of it travel by themselves. Pure."""

import re
from collections.abc import Sequence

import pyarrow as pa

from metasrv_base.errors import MetaError

PLACE = "_place"
"""Column of the place of each row in the source; 0 is the first. Never sent."""
_POINTER = re.compile(r"/rows/(?P<place>[0-9]+)(?P<rest>/.*)?", re.ASCII | re.DOTALL)


def numbered(rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Returns *rows* with the column `_place`, counted from *first*."""
    places = pa.array(range(first, first + rows.num_rows), pa.int64())
    return rows.append_column(PLACE, places)


def placed(error: MetaError, places: Sequence[int] | pa.Int64Array) -> MetaError:
    """Returns *error* with its pointer changed to the row's place in the source, which *places*
    lists. A detail with the old place is dropped; it is generated again from the facts."""
    match = _POINTER.fullmatch(str(error.facts.get("pointer")))
    if match is None or int(match["place"]) >= len(places):
        return error
    position = places[int(match["place"])]
    number = position.as_py() if isinstance(position, pa.Scalar) else position
    pointer = f"/rows/{number}{match['rest'] or ''}"
    facts = {name: fact for name, fact in error.facts.items() if name != "detail"}
    return type(error)(error.code, **{**facts, "pointer": pointer})


def moved(error: MetaError, first: int, count: int) -> MetaError:
    """Returns the error with the place in its pointer raised by *first*: the *count* rows that the
    error is about follow *first* others in the source."""
    return placed(error, range(first, first + count))
