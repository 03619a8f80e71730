"""The query parameters of each route: requests are checked and documented by this table."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    type: str
    """The type as in JSON schema."""
    about: str
    repeated: bool = False
    """Whether it may be given several times, once for each column of a composite."""


PARAMETERS: Mapping[str, Parameter] = {
    "op": Parameter("string", "Of an Arrow stream: insert, upsert, update or delete."),
    "key": Parameter("string", "A value of the primary key, as JSON, or a bare word.", True),
    "index": Parameter("string", "Name of a public index."),
    "eq": Parameter("string", "A value of the index that rows must have, as JSON.", True),
    "from": Parameter("string", "First value of the index or key, as JSON; inclusive.", True),
    "to": Parameter("string", "Value of the index or key to end before, as JSON.", True),
    "limit": Parameter("integer", "Rows of a page, 1 to 10,000. Default: 1,000."),
    "page_token": Parameter("string", "Of the page before."),
    "apart": Parameter("boolean", "Each page is a transaction of its own, good at any frontend."),
    "columns": Parameter("string", "Names, with commas between. Default: all."),
    "column_ids": Parameter("string", "The same by their ids, whatever they are called."),
    "region": Parameter("integer", "Number of the only region."),
    "max_lag": Parameter(
        "integer",
        "Age in ms that rows may have, 1 to 3,600,000: a copy may answer that has all rows that"
        " were acknowledged so long before the read. Default: leaders answer, with all rows.",
    ),
}
"""Parameters by name."""

OP = frozenset({"op"})
LAG = frozenset({"max_lag"})
KEY = frozenset({"key"}) | LAG
PAGE = frozenset({"page_token", "limit"})
INDEX = frozenset({"index", "eq", "from", "to", "limit", "apart"}) | LAG
SCAN = frozenset({"columns", "column_ids", "from", "to", "region", "limit", "apart"}) | LAG
REGION = frozenset({"region"})
NONE = frozenset[str]()
