"""An error as a person at a terminal reads it: what happened, what is wrong, what to do."""

from collections.abc import Iterator

from metasrv.cli.columns import printable
from metasrv.cli.errors.advice import advice_of, is_playground
from metasrv.cli.errors.offenders import offending_rows
from metasrv.cli.errors.places import NO_PLACES, Places, in_words, place_of
from metasrv.cli.errors.unreachable import is_unreachable, reason_of
from metasrv.cli.output import value_text
from metasrv_base.errors import Corrupt, MetaError, Unknown
from metasrv_base.wire.problem.problems import kind_of, problem_of

LISTED = ("keys", "regions", "waits_for", "told")


def words(error: MetaError, urls: str = "the URL", places: Places = NO_PLACES) -> Iterator[str]:
    """Lines, most important first. *urls*: of the service that was asked, for an error without an
    answer. *places*: of what the command sent."""
    if is_unreachable(error):
        reason, advice = reason_of(error, urls)
        yield f"error: {reason}"
        if isinstance(error, Unknown | Corrupt):
            yield "  If it was a change, it may have been done: look before you repeat it."
        yield f"  to do: {advice}"
        return
    kind = kind_of(error)
    title = "A playground runs there already" if is_playground(error) else kind.title
    yield f"error: {title} ({kind.code})"
    yield from _faults(error, places)
    yield from _excerpt(error)
    yield from _names(error)
    for name in LISTED:
        value = error.facts.get(name)
        for entry in value if isinstance(value, list) else [value] if value else []:
            yield f"  {name}: {value_text(entry)}"
    yield from _rows(error)
    yield f"  to do: {advice_of(error)}"
    procedure = error.facts.get("procedure_id")
    if procedure is not None and kind.code != "procedure-not-found":
        yield f"  procedure: {procedure}  (metasrv procedure get {procedure})"


def _faults(error: MetaError, places: Places) -> Iterator[str]:
    problem = problem_of(error, "", "")[2]
    errors = problem.get("errors")
    if not errors:
        detail = str(error.facts.get("detail") or problem["detail"])
        yield f"  {in_words(detail, error.facts.get('pointer'), places)}"
    for fault in errors if isinstance(errors, list) else []:
        if isinstance(fault, dict):
            pointer = str(fault["pointer"])
            where = f"{place_of(pointer, places)}: " if pointer else ""
            yield f"  {where}{in_words(str(fault['detail']), pointer, places)}"


def _excerpt(error: MetaError) -> Iterator[str]:
    """The line of SQL text with a mark under the place, and what was done before it."""
    excerpt, line = error.facts.get("excerpt"), error.facts.get("line")
    if not isinstance(excerpt, str) or not isinstance(line, int):
        return
    text, _, mark = excerpt.partition("\n")
    head = f"  line {line}: "
    yield f"{head}{printable(text.expandtabs(1))}"
    yield f"{' ' * len(head)}{mark.expandtabs(1)}"
    number, done = error.facts.get("statement"), error.facts.get("statements_done")
    if isinstance(number, int) and number > 1:
        yield f"  it is statement {number}; {_done_before(number, done)}"


def _done_before(number: int, done: object) -> str:
    if not isinstance(done, int) or done == number - 1:
        return "those before it are done, unless they are of its batch"
    are = "the first one is" if done == 1 else f"the first {done} are"
    return f"{are} done, and none behind was begun"


def _names(error: MetaError) -> Iterator[str]:
    """The name that was perhaps meant, or some of those that exist."""
    facts = error.facts
    if (close := facts.get("did_you_mean")) is not None:
        yield f"  did you mean {within(error, str(close))}?"
    if isinstance(existing := facts.get("existing"), list):
        more = f" and {facts['more']} more" if facts.get("more") else ""
        names = ", ".join(within(error, str(name)) for name in existing)
        yield f"  there are: {names}{more}"


def within(error: MetaError, name: str) -> str:
    """*name* as a command takes it: with the schema or catalog of the object that *error* names,
    unless commands take that one for granted."""
    if error.code == "table-not-found":
        granted = "main.public"
    elif error.facts.get("what") == "schema":
        granted = "main"
    else:
        return name
    around = str(error.facts.get("name", "")).rpartition(".")[0]
    return name if around in ("", granted) else f"{around}.{name}"


def counted_rows(count: int) -> str:
    return "1 row was" if count == 1 else f"{count} rows were"


def _rows(error: MetaError) -> Iterator[str]:
    """Rows that are in the way, and how many were written."""
    yield from offending_rows(error.facts)
    for name, verb in (("rows", "loaded"), ("rows_applied", "written")):
        if isinstance(count := error.facts.get(name), int) and count:
            yield f"  {counted_rows(count)} {verb} before that"
