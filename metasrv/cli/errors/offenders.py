"""Rows in the way of a change, one line each."""

from collections.abc import Iterator, Mapping

from metasrv.cli.output import said

ROWS_SHOWN_MAX = 10


def offending_rows(facts: Mapping[str, object]) -> Iterator[str]:
    """Lines for the rows that the facts of an error list."""
    for name in ("violations", "duplicates", "repeated"):
        found = facts.get(name)
        yield from offenders(name, found if isinstance(found, list) else [])


def offenders(name: str, found: list[object]) -> Iterator[str]:
    """One line each for the first rows that a constraint or an index cannot have."""
    for one in found[:ROWS_SHOWN_MAX]:
        if not isinstance(one, Mapping) or not {"key", "rows"} & one.keys():
            yield f"  {name}: {said(one)}"
        elif "rows" in one:
            rows = "; ".join(map(said, one["rows"]))
            yield f"  {said(one['values'])} stands in the rows {rows}"
        else:
            yield f"  row {said(one['key'])} breaks {one['constraint']}: {said(one['values'])}"
    if len(found) > ROWS_SHOWN_MAX:
        yield f"  and {len(found) - ROWS_SHOWN_MAX} more"
