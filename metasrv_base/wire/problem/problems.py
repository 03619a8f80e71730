"""Errors as problem+json (RFC 9457) and back: the one table between our errors and HTTP."""

import json
from collections.abc import Iterable, Mapping, Sequence
from string import Formatter
from typing import Any

from pydantic import Field, JsonValue, ValidationError

from metasrv_base.errors import (
    Conflict,
    Corrupt,
    MetaError,
    NotFound,
    Refused,
    Unavailable,
    Unknown,
)
from metasrv_base.wire.model import Int64, Listed, WireModel
from metasrv_base.wire.problem.fault_words import fault_of
from metasrv_base.wire.problem.problem_kind import ProblemKind
from metasrv_base.wire.problem.problems_final import REFUSALS
from metasrv_base.wire.problem.problems_in_use import USES
from metasrv_base.wire.problem.problems_retryable import MOVES

MEDIA_TYPE = "application/problem+json"
KINDS: Mapping[str, ProblemKind] = {kind.code: kind for kind in (*REFUSALS, *MOVES, *USES)}

ECHO_CHARS_MAX = 200  # of anything that came in; more would make us a mirror for log forgers
ERRORS_MAX = 50  # entries of `errors`
FACTS_MAX = 20  # entries of `facts`, and of each list or object in it
DEPTH_MAX = 6  # of lists and objects in a fact: rows by column name in a list of faults have four
SAFE_INTEGER = (1 << 53) - 1  # beyond it a JSON reader with doubles loses digits

_DEFINITE = (Refused, Conflict)  # surely not done: the code may choose the words
_MEMBERS = ("procedure_id", "blocked_by", "did_you_mean", "regions")
_WHOLE = ("errors", "results")  # bounded where they are made


class FieldError(WireModel):
    """An error in one field of a request."""

    pointer: str
    """JSON pointer (RFC 6901) into the body; "" is the whole body."""
    code: str = "invalid-request"
    """A problem code."""
    detail: str
    """The fault, and what would be right."""


class Problem(WireModel):
    """The body of every answer that is not a success."""

    type: str
    """`/problems/{code}`: a page that says what it means and what to do."""
    code: str
    title: str
    """The same for every problem of this code."""
    status: Int64
    detail: str
    """The fault in this request, and what would be right."""
    instance: str
    """The path that was asked for."""
    request_id: str
    """Find the request in the logs by it."""
    retryable: bool
    """Whether the same request may succeed later."""
    retry_after_s: Int64 | None = None
    procedure_id: str | None = None
    """The procedure that did it, or that stands in the way."""
    blocked_by: JsonValue = None
    """The holders of what the request needs."""
    errors: Listed[FieldError] = ()
    """Every field that is wrong, at most 50."""
    did_you_mean: str | None = None
    regions: JsonValue = None
    """The result of a write in each region."""
    results: Listed[JsonValue] = ()
    """Results of the statements of SQL before the one that failed, as the answer of a text without
    a fault has them."""
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    """The named values the detail is made of."""


def problem_of(
    error: MetaError, instance: str, request_id: str
) -> tuple[int, dict[str, str], dict[str, JsonValue]]:
    """Status, headers and body of an answer. Never fails, whatever the facts are."""
    kind = kind_of(error)
    facts = {name: safe(value) for name, value in error.facts.items() if name not in _WHOLE}
    members = {name: facts.pop(name) for name in _MEMBERS if facts.get(name) is not None}
    wait = facts.pop("retry_after_s", None)
    retry_after = wait if isinstance(wait, int) and wait > 0 else kind.retry_after_s
    all_facts = {**members, **facts, **({"request_id": request_id} if request_id else {})}
    if all_facts.get("pointer") == "":  # the whole of it
        del all_facts["pointer"]
    body: dict[str, JsonValue] = {
        "type": f"/problems/{kind.code}",
        "code": kind.code,
        "title": kind.title,
        "status": kind.status,
        "detail": detail_of(kind, all_facts),
        "instance": _cut(instance),
        "request_id": request_id,
        "retryable": retry_after is not None,
        **{name: value for name, value in members.items() if name in ("blocked_by", "regions")},
        **{
            name: str(members[name]) for name in ("procedure_id", "did_you_mean") if name in members
        },
    }
    if retry_after is not None:
        body["retry_after_s"] = retry_after
    if errors := _shown(error.facts.get("errors")):
        body["errors"] = [entry.model_dump() for entry in errors]
        if "expected" not in facts and "reason" not in facts and kind.status == 422:
            body["detail"] = _summary(errors)
    done = error.facts.get("results")
    if isinstance(done, tuple) and done:
        body["results"] = [
            result.model_dump(mode="json") if isinstance(result, WireModel) else safe(result)
            for result in done
        ]
    if facts:
        body["facts"] = dict(list(facts.items())[:FACTS_MAX])
    return kind.status, _headers(kind, retry_after), body


def error_of(status: int, body: object) -> MetaError:
    """The error that an answer means; the inverse of `problem_of`.

    An answer that is no problem of ours (a proxy's, say) is judged by its status: only below 500
    and with 503 it is surely not done.
    """
    try:
        problem = Problem.model_validate(body)
    except ValidationError:
        return _foreign(status)
    kind = KINDS.get(problem.code)
    if kind is None:
        return _foreign(status)
    facts: dict[str, Any] = dict(problem.facts)
    if problem.retry_after_s is not None:
        facts["retry_after_s"] = problem.retry_after_s
    if problem.errors:
        facts["errors"] = problem.errors
    if problem.results:
        facts["results"] = problem.results
    for name in _MEMBERS:
        if (value := getattr(problem, name)) is not None:
            facts[name] = value
    facts.setdefault("detail", problem.detail)
    if kind.error is Corrupt:
        facts["request_id"] = problem.request_id  # the log of the server has the cause under it
    return kind.error(kind.code, **facts)


def is_refusal(code: str) -> bool:
    """Whether asking again is no use. What is not found may come, and so may what a later release
    says and we do not know."""
    return code in KINDS and KINDS[code].error is Refused


def node_error(code: str, facts: Mapping[str, Any]) -> MetaError:
    """Returns the error that a node answered; Unavailable for a code that we do not know."""
    kind = KINDS.get(code)
    return Unavailable(told=code, **facts) if kind is None else kind.error(code, **facts)


def kind_of(error: MetaError) -> ProblemKind:
    """The row of an error. A code never changes whether something was done: an `Unknown` with the
    code of a refusal is still `outcome-unknown`."""
    kind = KINDS.get(error.code)
    if kind is not None and isinstance(error, kind.error):
        return kind
    if kind is not None and isinstance(error, _DEFINITE) and issubclass(kind.error, _DEFINITE):
        return kind
    return KINDS[type(error).default_code]


def detail_of(kind: ProblemKind, facts: Mapping[str, JsonValue]) -> str:
    """The first sentence whose facts are all known; ends with `reason` if that is not in it."""
    template = next(text for text in kind.details if _fields(text) <= facts.keys())
    text = template.format_map({name: _fact_text(facts[name]) for name in _fields(template)})
    reason = facts.get("reason")
    if isinstance(reason, str) and "{reason}" not in template:
        text = f"{text} {reason[:1].upper()}{reason[1:]}."
    return text[:-1] if text.endswith("?.") else text


def field_errors(errors: Iterable[Mapping[str, Any]], body: object) -> tuple[FieldError, ...]:
    """pydantic's errors with JSON pointers into `body`, as it was sent."""
    faults = list(errors)
    entries = [
        FieldError(pointer=_pointer(error["loc"], body), detail=_cut(fault_of(error)))
        for error in faults
        if not _follows(error, faults)
    ]
    return tuple(entries[:ERRORS_MAX])


def refuse(errors: Sequence[FieldError]) -> None:
    """Raises Refused, with the code of the first, unless there are none."""
    if errors:
        raise Refused(errors[0].code, errors=tuple(errors[:ERRORS_MAX]))


def safe(value: object, depth: int = DEPTH_MAX) -> JsonValue:
    """Any fact as bounded JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) <= SAFE_INTEGER else _cut(str(value))
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, Mapping) and depth:
        pairs = list(value.items())[:FACTS_MAX]
        return {_cut(str(name)): safe(item, depth - 1) for name, item in pairs}
    if isinstance(value, list | tuple | set | frozenset) and depth:
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else list(value)
        return [safe(item, depth - 1) for item in items[:FACTS_MAX]]
    if isinstance(value, WireModel) and depth:
        return safe(value.model_dump(mode="json"), depth)
    return _cut(str(value))


def pages() -> dict[str, str]:
    """Path -> text of the pages under docs/problems/, which are generated."""
    index = [f"- [`{kind.code}`]({kind.code}.md) {kind.status}: {kind.title}" for kind in _sorted()]
    head = "# Problems\n\nEvery error answer has one of these codes. Generated.\n\n"
    return {
        "docs/problems/README.md": head + "\n".join(index) + "\n",
        **{f"docs/problems/{kind.code}.md": page_of(kind) for kind in _sorted()},
    }


def page_of(kind: ProblemKind) -> str:
    """The page about one problem, as Markdown: headings and paragraphs."""
    again = (
        f"Sending it again may help, after {kind.retry_after_s} s unless the answer says otherwise."
        if kind.retryable
        else "Sending the same request again does not help."
    )
    return (
        f"# {kind.code}\n\n{kind.title}.\n\n"
        f"Status {kind.status}. {_MEANING[kind.error.__name__]} {again}\n\n"
        f"## What to do\n\n{kind.advice}\n"
    )


_MEANING: Mapping[str, str] = {
    "Refused": "Not done: the request must be changed.",
    "NotFound": "Not done: the named object does not exist.",
    "Conflict": "Not done: the state has changed, or the object is busy.",
    "NotLeader": "Not done: another server must do it.",
    "Unavailable": "Not done: it was never attempted.",
    "Unknown": "Perhaps done: the answer was lost.",
    "Corrupt": "Stored data is damaged.",
}


def _sorted() -> list[ProblemKind]:
    return sorted(KINDS.values(), key=lambda kind: kind.code)


def _headers(kind: ProblemKind, retry_after_s: int | None) -> dict[str, str]:
    headers = {"content-type": MEDIA_TYPE}
    if retry_after_s is not None and kind.status in (408, 429, 503, 504, 507):
        headers["retry-after"] = str(retry_after_s)
    if kind.status == 401:
        headers["www-authenticate"] = "Bearer"
    return headers


def _foreign(status: int) -> MetaError:
    if status in (429, 503):
        return Unavailable("not-ready", status=status)
    if status == 404:
        return NotFound(status=status)
    if status < 500:
        return Refused("invalid-request", status=status)
    return Unknown("outcome-unknown", status=status)


def _summary(errors: Sequence[FieldError]) -> str:
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    where = f"{errors[0].pointer}: " if errors[0].pointer else ""
    return f"{where}{errors[0].detail}{more}"


def _shown(errors: object) -> tuple[FieldError, ...]:
    if not isinstance(errors, list | tuple):
        return ()
    entries = [error for error in errors if isinstance(error, FieldError)][:ERRORS_MAX]
    return tuple(
        error.model_copy(update={"pointer": _cut(error.pointer), "detail": _cut(error.detail)})
        for error in entries
    )


def _follows(error: Mapping[str, Any], faults: Sequence[Mapping[str, Any]]) -> bool:
    """pydantic counts only the items that were right: a list is "too short" because of another
    fault, which is reported with its own place."""
    here = error["loc"]
    return error["type"] == "too_short" and any(
        len(other["loc"]) > len(here) and other["loc"][: len(here)] == here for other in faults
    )


def _pointer(loc: Sequence[int | str], body: object) -> str:
    """Steps that are not in the body (the tag of a union) are left out, but for a missing field."""
    parts: list[str] = []
    value = body
    for position, part in enumerate(loc):
        members = dict(enumerate(value)) if isinstance(value, list) else value
        inside = isinstance(members, dict) and part in members
        if inside or position == len(loc) - 1:
            parts.append(str(part).replace("~", "~0").replace("/", "~1"))
        if isinstance(members, dict) and inside:
            value = members[part]
    return _cut("".join(f"/{part}" for part in parts))


def _fields(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def _fact_text(value: JsonValue) -> str:
    """Returns a fact for use in a sentence: a text as it is, anything else as JSON."""
    if isinstance(value, list):
        return _cut(", ".join(map(_fact_text, value)))
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    """Cuts *text* to at most 200 characters and replaces those that UTF-8 cannot carry."""
    clean = text[:ECHO_CHARS_MAX].encode("utf-8", "replace").decode()
    return clean if len(text) <= ECHO_CHARS_MAX else clean[:-1] + "…"
