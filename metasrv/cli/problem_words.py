"""An error as a person at a terminal reads it: what happened, what is wrong, what to do."""

from collections.abc import Iterator, Mapping

from metasrv.cli.files import FILE
from metasrv.cli.output import said
from metasrv_base.errors import MetaError, Unavailable, Unknown
from metasrv_base.wire.problem.problems import kind_of, problem_of

LISTED = ("keys", "regions", "waits_for", "told")
ROWS_SHOWN_MAX = 10


def is_unreachable(error: MetaError) -> bool:
    """Whether no server has said anything: what servers say has a detail, a proxy's a status."""
    if not isinstance(error, Unavailable | Unknown):
        return False
    return not {"detail", "status", "procedure_id", "regions", "reason"} & error.facts.keys()


def words(error: MetaError) -> Iterator[str]:
    """Lines, most important first."""
    kind = kind_of(error)
    yield f"error: {kind.title} ({kind.code})"
    yield from _faults(error)
    for name in LISTED:
        value = error.facts.get(name)
        for entry in value if isinstance(value, list) else [value] if value else []:
            yield f"  {name}: {said(entry)}"
    yield from _rows(error)
    yield f"  to do: {_advice(error)}"
    if (procedure := error.facts.get("procedure_id")) is not None:
        yield f"  procedure: {procedure}  (metasrv procedure get {procedure})"


def _faults(error: MetaError) -> Iterator[str]:
    problem = problem_of(error, "", "")[2]
    errors = problem.get("errors")
    if not errors:
        yield f"  {error.facts.get('detail') or problem['detail']}"
    for one in errors if isinstance(errors, list) else []:
        if isinstance(one, dict):
            where = f"{one['pointer']}: " if one["pointer"] else ""
            yield f"  {where}{one['detail']}"


def _rows(error: MetaError) -> Iterator[str]:
    """Rows that are in the way, and how many were written."""
    yield from offending_rows(error.facts)
    for name, verb in (("rows", "loaded"), ("rows_applied", "written")):
        if isinstance(count := error.facts.get(name), int) and count:
            yield f"  {count} rows were {verb} before that"


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


def _advice(error: MetaError) -> str:
    kind = kind_of(error)
    if error.facts.get("pointer") == FILE:
        return "mend the file, or say how it is written: `metasrv import --help`"
    if is_unreachable(error):
        return "check the URL and whether the service runs"
    if error.facts.get("state") == "cancelled":
        return "ask for it again if it is wanted still"
    if isinstance(error.facts.get("rows"), int) and kind.code == "invalid-request":
        return "mend the file, then load it again from its start"
    return kind.advice
