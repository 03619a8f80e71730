"""Every error becomes an answer and comes back; no answer tells more than it should."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from metasrv_base.errors import (
    Conflict,
    Corrupt,
    MetaError,
    NotFound,
    NotLeader,
    Refused,
    Unavailable,
    Unknown,
)
from metasrv_base.wire.api.tables import TableSpec
from metasrv_base.wire.problem.problems import (
    KINDS,
    FieldError,
    Problem,
    detail_of,
    error_of,
    field_errors,
    is_refusal,
    kind_of,
    node_error,
    pages,
    problem_of,
    refuse,
)

ROOT = Path(__file__).parents[4]
CLASSES = (Refused, NotFound, Conflict, NotLeader, Unavailable, Unknown, Corrupt)
CLOSED_LIST = [
    "malformed-json",
    "body-too-large",
    "cluster-token-needed",
    "headers-too-large",
    "unsupported-media-type",
    "invalid-request",
    "limit-exceeded",
    "invalid-identifier",
    "reserved-name",
    "bad-path",
    "bad-page-token",
    "bad-idempotency-key",
    "idempotency-key-reused",
    "not-found",
    "table-not-found",
    "prefix-not-empty",
    "procedure-not-found",
    "already-exists",
    "schema-conflict",
    "ambiguous-dropped-table",
    "object-locked",
    "table-poisoned",
    "action-not-allowed",
    "past-point-of-no-return",
    "version-mismatch",
    "ddl-too-large",
    "unsupported",
    "invalid-schema-change",
    "unique-needs-partition-columns",
    "node-still-alive",
    "node-bound",
    "node-in-use",
    "node-removed",
    "node-not-eligible",
    "failover-guard",
    "maintenance-mode",
    "epoch-mismatch",
    "stale-epoch",
    "schema-version-stale",
    "transaction-too-old",
    "statement-too-old",
    "clock-skew",
    "statement-memory-full",
    "region-lost",
    "history-expired",
    "invalid-backup",
    "not-in-batch",
    "page-token-expired",
    "too-many-procedures",
    "wrong-cluster",
    "stale-incarnation",
    "not-leader",
    "no-leader",
    "not-ready",
    "schema-audit-failed",
    "stale",
    "storage-full",
    "outcome-unknown",
    "method-not-allowed",
    "not-empty",
    "tenant-limit",
    "above-tenant-limit",
    "object-in-use",
    "too-many-objects",
    "request-timeout",
    "deadline-exceeded",
    "malformed-request",
    "unauthenticated",
    "index-not-unique",
    "unique-violation",
    "check-violation",
    "row-missing",
    "constraint-violated",
    "replica-limit",
    "invalid-sql",
    "not-in-place",
    "destructive-plan",
    "plan-changed",
    "job-failed",
    "order-refused",
    "internal",
    "being-dropped",
    "too-few-copies",
]

each_code = pytest.mark.parametrize("code", CLOSED_LIST)


def answer(error: MetaError) -> tuple[int, dict[str, str], Problem]:
    status, headers, body = problem_of(error, "/v1/x", "req-1")
    return status, headers, Problem.model_validate(json.loads(json.dumps(body)))


def test_given_the_table_then_it_is_the_closed_list() -> None:
    assert sorted(KINDS) == sorted(CLOSED_LIST)


@each_code
def test_given_a_code_when_answered_then_the_same_error_comes_back(code: str) -> None:
    kind = KINDS[code]
    sent = kind.error(code, name="flights", retry_after_s=3)

    status, headers, problem = answer(sent)
    back = error_of(status, problem.model_dump(mode="json"))

    assert (type(back), back.code) == (kind.error, code)
    assert back.facts["name"] == "flights"
    assert back.facts["retry_after_s"] == 3
    assert status == problem.status == kind.status
    assert problem.type == f"/problems/{code}"
    assert headers["content-type"] == "application/problem+json"
    assert ("retry-after" in headers) == (status in (408, 429, 503, 504, 507))


@each_code
def test_given_a_code_that_a_node_says_then_it_is_that_error(code: str) -> None:
    error = node_error(code, {"name": "flights"})

    assert (type(error), error.code) == (KINDS[code].error, code)
    assert is_refusal(code) == (type(error) is Refused)


def test_given_a_code_of_a_later_release_then_it_is_tried_again() -> None:
    error = node_error("never-heard-of", {"name": "flights"})

    assert isinstance(error, Unavailable)
    assert error.facts == {"told": "never-heard-of", "name": "flights"}
    assert not is_refusal("never-heard-of")


@each_code
def test_given_a_code_without_facts_when_answered_then_it_has_words(code: str) -> None:
    problem = answer(KINDS[code].error(code))[2]

    assert problem.detail.endswith((".", "?"))
    assert "{" not in problem.detail
    assert problem.retryable == KINDS[code].retryable


@each_code
def test_given_a_code_then_its_page_is_checked_in(code: str) -> None:
    path = f"docs/problems/{code}.md"

    assert (ROOT / path).read_text() == pages()[path]


def test_given_the_pages_then_nothing_else_is_there() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/problems").iterdir()}

    assert found == set(pages())


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_given_a_class_without_a_code_when_answered_then_it_comes_back(
    kind: type[MetaError],
) -> None:
    status, _, problem = answer(kind())

    assert type(error_of(status, problem.model_dump(mode="json"))) is kind


@pytest.mark.parametrize("kind", [Unknown, Unavailable, Corrupt])
def test_given_a_code_of_another_class_when_answered_then_the_class_wins(
    kind: type[MetaError],
) -> None:
    assert kind_of(kind("already-exists")).error is kind


def test_given_a_definite_error_with_a_code_of_the_other_then_the_code_wins() -> None:
    assert kind_of(Refused("already-exists")).status == 409
    assert kind_of(Conflict("unsupported")).status == 422


def test_given_a_code_nobody_listed_when_answered_then_the_class_speaks() -> None:
    assert kind_of(Refused("nonsense")).code == "invalid-request"


def test_given_long_and_hostile_facts_when_answered_then_they_are_cut() -> None:
    facts: dict[str, object] = {f"f{n}": "x" * 1000 for n in range(100)}
    error = Refused("invalid-request", **facts, expected="y" * 1000, odd="\ud800", big=2**70)
    deep = Refused("unsupported", what={"a": {"b": {"c": {"d": 1}}}}, many=list(range(10_000)))

    _, _, problem = answer(error)
    _, _, nested = answer(deep)

    assert len(problem.facts) == 20
    assert all(len(str(value)) <= 200 for value in problem.facts.values())
    assert len(problem.detail) < 300
    assert nested.facts["many"] == list(range(20))


def test_given_a_path_of_a_megabyte_when_answered_then_it_is_cut() -> None:
    _, _, body = problem_of(NotFound(), "/v1/" + "x" * 1_000_000, "req-1")

    assert len(str(body["instance"])) == 200


def test_given_errors_when_answered_then_each_keeps_its_place() -> None:
    wrong = (
        FieldError(pointer="/name", code="invalid-identifier", detail="not a name"),
        FieldError(pointer="/replicas", code="unsupported", detail="z" * 500),
    )

    with pytest.raises(Refused) as refused:
        refuse(wrong)
    status, _, problem = answer(refused.value)

    assert (status, problem.code) == (422, "invalid-identifier")
    assert problem.errors[0] == wrong[0]
    assert len(problem.errors[1].detail) == 200
    assert problem.detail == "/name: not a name (and 1 more)"
    refuse(())


def test_given_members_when_answered_then_they_have_their_own_place() -> None:
    error = Conflict(
        "object-locked", procedure_id="p-1", blocked_by=["p-2"], resource="t", holder="p-2"
    )

    _, _, problem = answer(error)

    assert (problem.procedure_id, problem.blocked_by) == ("p-1", ["p-2"])
    assert problem.detail == "t is held by p-2."
    assert "procedure_id" not in problem.facts


def test_given_rows_that_are_in_the_way_when_answered_then_the_first_are_among_the_facts() -> None:
    rows = [{"key": {"id": id}, "values": {"note": None}} for id in range(100)]
    error = Refused("check-violation", name="noted", total=100, violations=rows)

    _, _, body = problem_of(error, "/v1/t", "r")

    assert body["facts"] == {"name": "noted", "total": 100, "violations": rows[:20]}


def test_given_a_reason_when_answered_then_it_is_said() -> None:
    assert detail_of(KINDS["malformed-json"], {"reason": "it holds a key twice"}) == (
        "The body is not strict JSON (RFC 8259) in UTF-8. It holds a key twice."
    )


def test_given_a_full_disk_of_a_node_when_answered_then_it_is_not_taken_for_the_store() -> None:
    disk = {"path": "/data/dn-1/regions/r/wal-1-1-1", "disk": "/data", "limit": "ENOSPC"}

    assert detail_of(KINDS["storage-full"], disk) == "The disk /data of a node is full."
    assert detail_of(KINDS["storage-full"], {}) == "The metadata store is out of space."


def test_given_unknown_when_nothing_else_is_known_then_it_is_504() -> None:
    status, headers, problem = answer(Unknown(procedure_id="p-1"))

    assert (status, problem.code, headers["retry-after"]) == (504, "outcome-unknown", "2")


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Refused), (404, NotFound), (429, Unavailable), (503, Unavailable), (502, Unknown)],
)
def test_given_an_answer_of_a_proxy_then_its_status_is_judged(
    status: int, kind: type[MetaError]
) -> None:
    assert type(error_of(status, "<html>")) is kind
    assert type(error_of(status, None)) is kind


def test_given_what_pydantic_refuses_then_pointers_leave_out_the_tags_of_unions() -> None:
    body = {
        "name": "t",
        "columns": [{"name": "id", "type": 7}],
        "primary_key": ["id"],
        "partition": {"by": "hash", "columns": ["id"], "count": "4"},
        "table_id": 7,
        "a/b": 1,
    }

    with pytest.raises(ValidationError) as refused:
        TableSpec.model_validate(body)
    found = field_errors(refused.value.errors(), body)

    assert {error.pointer for error in found} == {
        "/columns/0/type",
        "/partition/count",
        "/table_id",
        "/a~1b",
    }


def test_given_a_missing_field_then_the_pointer_says_where_it_belongs() -> None:
    body = {"name": "t", "primary_key": ["id"], "partition": {"by": "hash", "columns": ["id"]}}

    with pytest.raises(ValidationError) as refused:
        TableSpec.model_validate(body)

    pointers = {error.pointer for error in field_errors(refused.value.errors(), body)}
    assert pointers == {"/columns", "/partition/count"}


def test_given_rows_by_column_name_in_a_list_of_faults_when_told_then_they_stay_json() -> None:
    faults = [{"values": {"a": 5}, "rows": [{"id": 1}, {"at": [2, {"deep": None}]}]}]

    body = problem_of(Refused("unique-violation", duplicates=faults), "", "")[2]

    assert body["facts"] == {"duplicates": faults}


def test_given_a_fact_that_is_no_text_when_it_is_in_a_sentence_then_it_is_json() -> None:
    error = Conflict("already-exists", what="The row", name={"id": 7, "ok": True})

    assert '{"id": 7, "ok": true}' in str(problem_of(error, "", "")[2]["detail"])
