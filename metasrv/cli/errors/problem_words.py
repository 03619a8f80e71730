"""An error as a person at a terminal reads it: what happened, what is wrong, what to do."""

from collections.abc import Iterator, Mapping

from metasrv.cli.errors.offenders import offending_rows
from metasrv.cli.errors.places import FILE, NO_PLACES, Places, in_words, place_of
from metasrv.cli.errors.unreachable import is_unreachable, reason_of
from metasrv.cli.output import said
from metasrv_base.errors import MetaError, Unknown
from metasrv_base.wire.problem.problems import kind_of, problem_of

LISTED = ("keys", "regions", "waits_for", "told")
ADVICE: Mapping[str, str] = {
    "invalid-request": "correct it and repeat the command; nothing was changed",
    "already-exists": "choose another name; --if-not-exists accepts an equal object",
    "schema-conflict": "--if-not-exists accepts an equal table only: alter it, or choose a name",
    "ambiguous-dropped-table": "name one with --table-id; `metasrv table list --dropped` has ids",
    "not-empty": "drop what it holds first, or all of it with --cascade",
    "being-dropped": "wait for the procedure, or choose another name",
    "table-not-found": "`metasrv table list` shows the tables; with --dropped, dropped ones too",
    "object-locked": "repeat the command later; `metasrv procedure locks` shows who holds it",
    "table-poisoned": "`metasrv procedure poisons` says what is left; repair it, then clear it "
    "with `metasrv procedure clear`",
    "action-not-allowed": "`metasrv procedure get ID` shows the actions that are allowed",
    "maintenance-mode": "end the maintenance: `metasrv cluster maintenance off`",
    "check-violation": "correct the rows, or add it with --not-valid, which exempts the rows "
    "that are there; --validate checks them later",
    "deadline-exceeded": "nothing was changed; see what it waited for, then repeat the command",
    "job-failed": "nothing was changed; see driver.log of the leader, then repeat the command",
    "order-refused": "nothing was changed; see order_failed in the node's log, then repeat the "
    "command",
    "too-many-procedures": "nothing was stored; repeat the command in some seconds",
    "not-leader": "repeat the command; `metasrv cluster get` shows the leader",
    "outcome-unknown": "it may have been done: look at the object, or at `metasrv procedure "
    "list`, before you repeat the command",
    "unauthenticated": "set METASRV_TOKEN, or METASRV_TOKEN_FILE to a file with the token",
    "cluster-token-needed": "only programs of the cluster may do this; see `cluster_tokens_file`",
    "limit-exceeded": "store large values elsewhere and keep keys short; docs/limits.md has the "
    "limits",
    "bad-page-token": "repeat the command",
    "malformed-request": "a program between here and the service changes requests; ask it directly",
    "headers-too-large": "the token is too long, or a program between here and the service adds "
    "headers",
    "unsupported-media-type": "a program between here and the service changes requests",
    "method-not-allowed": "the service is of another version than this command",
    "statement-too-old": "the clock of this machine may be wrong; read the rows, then repeat it",
    "statement-memory-full": "repeat the command later, with more rows in one batch",
    "internal": "report it, with the id of the request",
}
"""Advice by code for the command line, where that of the API speaks of HTTP."""


def words(error: MetaError, urls: str = "the URL", places: Places = NO_PLACES) -> Iterator[str]:
    """Lines, most important first. *urls*: of the service that was asked, for an error without an
    answer. *places*: of what the command sent."""
    if is_unreachable(error):
        reason, advice = reason_of(error, urls)
        yield f"error: {reason}"
        if isinstance(error, Unknown):
            yield "  The request was sent; it may have been done. Look before you repeat it."
        yield f"  to do: {advice}"
        return
    kind = kind_of(error)
    title = "A playground runs there already" if _is_playground(error) else kind.title
    yield f"error: {title} ({kind.code})"
    yield from _faults(error, places)
    if (close := error.facts.get("did_you_mean")) is not None:
        yield f"  did you mean {close}?"
    for name in LISTED:
        value = error.facts.get(name)
        for entry in value if isinstance(value, list) else [value] if value else []:
            yield f"  {name}: {said(entry)}"
    yield from _rows(error)
    yield f"  to do: {_advice(error)}"
    if (procedure := error.facts.get("procedure_id")) is not None:
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


def _rows(error: MetaError) -> Iterator[str]:
    """Rows that are in the way, and how many were written."""
    yield from offending_rows(error.facts)
    for name, verb in (("rows", "loaded"), ("rows_applied", "written")):
        if isinstance(count := error.facts.get(name), int) and count:
            yield f"  {count} rows were {verb} before that"


def _is_playground(error: MetaError) -> bool:
    return error.facts.get("holder") == "a playground"


def _advice(error: MetaError) -> str:
    kind = kind_of(error)
    if error.facts.get("pointer") == FILE:
        return (
            "mend the file, or say how it is written (with --create, its types): "
            "`metasrv import --help`"
        )
    if _is_playground(error):
        return "`metasrv playground status` shows it, `stop` ends it; or give another --data-dir"
    if kind.code == "not-ready" and "told" in error.facts:
        return "see to what its log says, then start it again"
    if error.facts.get("state") == "cancelled":
        return "ask for it again if it is wanted still"
    if isinstance(error.facts.get("rows"), int) and kind.code == "invalid-request":
        return "mend the file, then load it again from its start"
    return ADVICE.get(kind.code, kind.advice)
