"""The information schema as clients see it: which views there are, and pages of one."""

from typing import Literal

from pydantic import JsonValue

from metasrv_base.wire.model import Int64, Listed, WireModel

PATH = "/v1/information-schema"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
WHERE_CHARS_MAX = 4_096
COLUMNS_CHARS_MAX = 2_048


class ViewColumnBody(WireModel):
    """A column of a view."""

    name: str
    type: Literal["string", "int64", "float64", "boolean", "timestamp(ms)"]
    """The type of the values. In JSON and CSV a timestamp is an RFC 3339 time."""
    meaning: str


class ViewBody(WireModel):
    """A view of the information schema."""

    name: str
    meaning: str
    columns: Listed[ViewColumnBody]
    of_leader: bool
    """Whether it has what only the leader knows."""
    as_of: bool
    """Whether its rows are of one version of the catalog, so that it takes `as_of`."""


class ViewList(WireModel):
    """Answer of `GET /v1/information-schema`: all views, by name."""

    views: Listed[ViewBody]


class ViewPage(WireModel):
    """A page of the rows of a view."""

    view: str
    columns: Listed[str]
    """Names of the columns of `rows`."""
    rows: Listed[Listed[JsonValue]]
    """Rows in the order of the view, which pages keep."""
    catalog_version: Int64
    """The version of the catalog that rows are of: of all pages the same, where the view takes
    `as_of`; else the version when this page was made."""
    next_page_token: str | None = None
    """Opaque; null on the last page. A page of a filter that takes few rows may have less than were
    asked for, or none, and others follow."""
