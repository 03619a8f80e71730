"""Query parameters, as strict as bodies: unknown ones are refused, and `1.0` is no number."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from metasrv_base.wire.api.changes import GRACE_S_MAX
from metasrv_base.wire.model import RegionId

PAGE_SIZE = 100
PAGE_SIZE_MAX = 1_000
WATCHED_MAX = 1_000
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,15}")


def _decimal(value: object) -> object:
    if isinstance(value, str) and not _DECIMAL.fullmatch(value):
        raise ValueError("a whole number, as 100")
    return int(value) if isinstance(value, str) else value


def _boolean(value: object) -> object:
    if isinstance(value, str) and value not in ("true", "false"):
        raise ValueError("true or false")
    return value == "true" if isinstance(value, str) else value


Whole = Annotated[int, BeforeValidator(_decimal)]
Flag = Annotated[bool, BeforeValidator(_boolean)]


class Query(BaseModel):
    """No parameters; the base of those that have some."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ReadQuery(Query):
    """Parameters of every read of the catalog."""

    min_version: Whole = Field(default=0, ge=0)
    """Waits until this version of the catalog is known here: read your own writes."""
    as_of: str | None = Field(
        default=None, max_length=64, examples=["version:17", "2013-07-01T12:00:00Z"]
    )
    """`version:<n>`: the catalog as it was at that version. An RFC 3339 time in UTC: as it was
    then, for ever; 503 `not-ready` for a time that is not over, and where nobody leads who can say
    that it is."""
    fresh: Flag = False
    """Answer 503 `stale` instead of marking the answer `Catalog-Stale: true`."""


class PageQuery(ReadQuery):
    page_size: Whole = Field(default=PAGE_SIZE, ge=1, le=PAGE_SIZE_MAX)
    page_token: str | None = Field(default=None, max_length=2_048)
    """`next_page_token` of the page before, unchanged."""


class TablesQuery(PageQuery):
    prefix: str = Field(default="", max_length=128)
    """Only names that begin with it."""
    include_dropped: Flag = False


class TableVersionsQuery(PageQuery):
    transitions: Flag = False
    """Each version by itself, with the states of its elements, instead of each request."""


class VersionsQuery(TableVersionsQuery):
    operation: str | None = Field(default=None, max_length=64)
    """Only changes with such an operation, as `add_column`."""
    catalog: str | None = Field(default=None, max_length=128)
    schema_name: str | None = Field(default=None, alias="schema", max_length=257)
    """Its name, or `catalog.schema`."""
    table_id: Whole | None = Field(default=None, ge=0)
    by: str | None = Field(default=None, max_length=256)
    """Only changes of this principal."""


class EventsQuery(Query):
    since: Whole | None = Field(default=None, ge=0)
    """The version of the catalog that the watcher knows: events after it are told. `Last-Event-ID`
    goes before it. Default: from now on."""
    catalog: str | None = Field(default=None, max_length=128)
    """Only events of this catalog."""
    schema_name: str | None = Field(default=None, alias="schema", max_length=257)
    """Only events of this schema: its name, or `catalog.schema`."""
    table: str | None = Field(default=None, max_length=386)
    """Only events of tables that bear this name, or bore it before a rename: `table`,
    `schema.table`, or `catalog.schema.table`; and of what they are in."""
    table_id: Whole | None = Field(default=None, ge=0)
    """Only events of this table, under whatever name; and of what it is in."""


class ExportQuery(ReadQuery):
    catalog: str = Field(default="main", max_length=128)
    schema_name: str | None = Field(default=None, alias="schema", max_length=128)
    """Default: all schemas of the catalog."""


class DiffQuery(Query):
    from_: Whole = Field(alias="from", ge=0)
    """A version of the catalog."""
    to: Whole | None = Field(default=None, ge=0)
    """A version of the catalog; default: the newest."""


class RegionsQuery(PageQuery):
    node: str | None = Field(default=None, max_length=64)
    """Only regions that it leads."""
    table: Whole | None = Field(default=None, ge=0)
    """Only regions of the table of this id."""


class OrphansQuery(Query):
    first: RegionId = "0"
    """The region at which the page begins: `next` of the page before."""


class SchemaLeasesQuery(Query):
    table: Whole | None = Field(default=None, ge=0)
    """Only who uses the table of this id."""
    older_than: Whole | None = Field(default=None, ge=0)
    """Only who may still use that table below this schema version: who is waited for."""


def _ids(value: object) -> object:
    if not isinstance(value, str):
        return value
    parts = value.split(",")
    if len(parts) > WATCHED_MAX or not all(_DECIMAL.fullmatch(part) for part in parts):
        raise ValueError(f"at most {WATCHED_MAX} whole numbers with commas between, as 1024,1025")
    return frozenset(map(int, parts))


Ids = Annotated[
    frozenset[int],
    BeforeValidator(_ids),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+(,[0-9]+)*$"}),
]


class WatchQuery(Query):
    model_config = ConfigDict(validate_by_alias=True, validate_by_name=False)

    from_: Whole | None = Field(default=None, alias="from", ge=0)
    """The version that the reader has applied; it is told what came after, or, where that is not
    kept any more, all there is. Default: nothing yet."""
    tables: Ids | None = None
    """Only these tables, by id: `1024,1025`. Versions that change none of them are told too."""


class SignOffQuery(Query):
    incarnation: str = Field(min_length=1, max_length=4_096)
    """The incarnation that was registered: an older process cannot sign off a newer one with the
    same id."""


class ProceduresQuery(Query):
    state: str | None = Field(default=None, max_length=256)
    """One state, or several with commas between."""
    kind: str | None = Field(default=None, max_length=256)
    """One kind, or several with commas between."""
    resource: str | None = Field(default=None, max_length=512)
    """Its name, or its type and id, as `table:1024`."""
    parent: str | None = Field(default=None, max_length=36)
    """Only those that the procedure of this id has begun."""
    since: str | None = Field(default=None, max_length=64, examples=["2013-01-31T23:59:59Z"])
    """An RFC 3339 time in UTC: only procedures whose ids were made then or later."""
    until: str | None = Field(default=None, max_length=64, examples=["2013-02-01T00:00:00Z"])
    """The end, as `since`: only procedures submitted before this time."""
    stalled: Flag | None = None
    """Only those that have, or have not, gone without progress for long."""
    page_size: Whole = Field(default=PAGE_SIZE, ge=1, le=PAGE_SIZE_MAX)
    page_token: str | None = Field(default=None, max_length=2_048)
    """`next_page_token` of the page before, unchanged."""


class FailoversQuery(Query):
    state: str | None = Field(default=None, max_length=256)
    """One state, or several with commas between."""
    page_size: Whole = Field(default=PAGE_SIZE, ge=1, le=PAGE_SIZE_MAX)
    page_token: str | None = Field(default=None, max_length=2_048)
    """`next_page_token` of the page before, unchanged."""


class ChangeQuery(Query):
    """Parameters of every change."""

    on_conflict: Literal["queue", "fail"] = "queue"
    """`fail`: 409 `object-locked` instead of waiting for another change of the same object."""
    dry_run: Flag = False
    """Judge it and answer what it would do, storing nothing."""


class TableDropQuery(ChangeQuery):
    """Parameters of every drop."""

    if_exists: Flag = False
    """204 with `Catalog-Applied: false` where it does not exist, instead of 404."""


class ElementDropQuery(TableDropQuery):
    """Parameters of the drop of a part of a table."""

    grace_s: Whole = Field(default=0, ge=0, le=GRACE_S_MAX)
    """Seconds for which it is kept, hidden and maintained: until then an undrop brings it back at
    once. No other change of the table begins meanwhile."""


class DropQuery(TableDropQuery):
    """Parameters of the drop of a catalog or a schema."""

    cascade: Flag = False
    """Drop all that it holds, too. It is hidden at once; its tables go one by one."""
