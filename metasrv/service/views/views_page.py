"""docs/information-schema.md: every view and its columns, for readers."""

from collections.abc import Iterator

from metasrv.service.views.pages import LOOKED_AT_MAX
from metasrv.service.views.view import View
from metasrv.service.views.views import VIEWS

PATH = "docs/information-schema.md"
HEADER = f"""\
# The information schema

Generated from `metasrv/service/views/` by `make generate`; do not edit.

What the cluster holds, as rows: `GET /v1/information-schema` lists the views, and
`GET /v1/information-schema/{{view}}` answers one as JSON, CSV or Arrow
([rest.md](rest.md#11-the-information-schema)). `metasrv show VIEW` prints one, and `show(VIEW)` of
the [SDK](sdk.md#further-calls) returns one. Names of columns are those of the SQL standard's
information schema where it has them, else the API's.

- **One moment.** Rows of a view *of a version* are all of one version of the catalog, also those
  of all pages of one cursor and of a whole file; the answer names it, `as_of` chooses it, and any
  server answers. A view *of now* shows what the leader, or any server, knows when it is asked.
- **`where`** takes a condition as CHECK does: `=`, `<>`, `<`, `<=`, `>`, `>=`, `in`, `between`,
  `is null`, arithmetic, `and`, `or`, `not`; a time is written as RFC 3339 in single quotes. A
  row of which the condition is unknown (null) is left out.
- **Work.** `= constant` or `in (..)` of a column in *narrowed by*, beside others joined by `and`,
  saves work: only what it names is looked at. Anything else is computed for each row; one page
  looks at some {LOOKED_AT_MAX:,} rows at most, so pages of a filter that takes few may be short.
- Whoever may read the API may read all views: there are no rights per tenant yet.

| view | rows | of | answered by |
| --- | --- | --- | --- |
"""


def pages() -> dict[str, str]:
    """Path in this checkout -> text."""
    views = [VIEWS[name] for name in sorted(VIEWS)]
    rows = "".join(_row(view) for view in views)
    return {PATH: HEADER + rows + "".join("".join(_section(view)) for view in views)}


def _row(view: View) -> str:
    of = "a version" if view.is_versioned else "now"
    by = "the leader" if view.is_leaders else "any server"
    return f"| [`{view.name}`](#{view.name}) | {view.meaning} | {of} | {by} |\n"


def _section(view: View) -> Iterator[str]:
    yield f"\n## {view.name}\n\n{view.meaning}"
    if view.narrowed_by:
        yield f" Narrowed by {', '.join(f'`{name}`' for name in view.narrowed_by)}."
    yield "\n\n| column | type | meaning |\n| --- | --- | --- |\n"
    for column in view.columns:
        yield f"| `{column.name}` | `{column.type}` | {column.meaning} |\n"
