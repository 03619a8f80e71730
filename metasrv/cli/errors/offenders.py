"""Rows in the way of a change, one line each."""

from collections.abc import Iterator, Mapping

from metasrv.cli.output import value_text

ROWS_SHOWN_MAX = 10


def offending_rows(facts: Mapping[str, object]) -> Iterator[str]:
    """Lines for the rows that the facts of an error list."""
    for name in ("violations", "duplicates", "repeated"):
        faults = facts.get(name)
        yield from offenders(name, faults if isinstance(faults, list) else [])


def offenders(name: str, faults: list[object]) -> Iterator[str]:
    """One line each for the first rows that a constraint or an index cannot have."""
    for fault in faults[:ROWS_SHOWN_MAX]:
        if not isinstance(fault, Mapping) or not {"key", "rows"} & fault.keys():
            yield f"  {name}: {value_text(fault)}"
        elif "rows" in fault:
            rows = "; ".join(map(value_text, fault["rows"]))
            yield f"  {value_text(fault['values'])} stands in the rows {rows}"
        else:
            key, values = value_text(fault["key"]), value_text(fault["values"])
            yield f"  row {key} breaks {fault['constraint']}: {values}"
    if len(faults) > ROWS_SHOWN_MAX:
        yield f"  and {len(faults) - ROWS_SHOWN_MAX} more"
