"""The meaning of each answer of etcd that is not an answer, without an etcd."""

import pytest

from keys.store.etcd_errors import TokenRefused, meaning
from metasrv_base.errors import Conflict, MetaError, Refused, Unavailable, Unknown

ANSWERS = [
    ("DEADLINE_EXCEEDED", "Deadline Exceeded", Unknown, Unavailable),
    ("UNAVAILABLE", "etcdserver: leader changed", Unknown, Unavailable),
    ("UNAVAILABLE", "Connection reset by peer", Unknown, Unavailable),
    ("CANCELLED", "", Unknown, Unavailable),
    ("INTERNAL", "", Unknown, Unavailable),
    ("UNKNOWN", "a text of a newer etcd", Unknown, Unavailable),
    ("RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded", Unknown, None),
    ("RESOURCE_EXHAUSTED", "etcdserver: too many requests", Unknown, Unavailable),
    ("INVALID_ARGUMENT", "etcdserver: too many operations in txn request", Refused, None),
    ("INVALID_ARGUMENT", "etcdserver: request is too large", Refused, None),
    ("INVALID_ARGUMENT", "etcdserver: key is not provided", Refused, Refused),
    ("NOT_FOUND", "etcdserver: requested lease not found", Conflict, None),
    (
        "OUT_OF_RANGE",
        "etcdserver: mvcc: required revision has been compacted",
        Conflict,
        Conflict,
    ),
    (
        "OUT_OF_RANGE",
        "etcdserver: mvcc: required revision is a future revision",
        Unavailable,
        Unavailable,
    ),
    ("UNAUTHENTICATED", "etcdserver: invalid auth token", TokenRefused, TokenRefused),
    (
        "INVALID_ARGUMENT",
        "etcdserver: revision of auth store is old",
        TokenRefused,
        TokenRefused,
    ),
    ("INVALID_ARGUMENT", "etcdserver: user name is empty", Refused, Refused),
    ("PERMISSION_DENIED", "etcdserver: permission denied", Refused, Refused),
]


@pytest.mark.parametrize(("status", "details", "of_a_write", "of_a_read"), ANSWERS)
def test_given_an_error_of_etcd_when_translated_then_it_says_whether_it_was_done(
    status: str, details: str, of_a_write: type[MetaError], of_a_read: type[MetaError] | None
) -> None:
    assert type(meaning(status, details, "txn", writes=True)) is of_a_write
    if of_a_read is not None:
        assert type(meaning(status, details, "txn", writes=False)) is of_a_read


def test_given_no_space_when_translated_then_the_reason_is_told() -> None:
    details = "etcdserver: mvcc: database space exceeded"

    error = meaning("RESOURCE_EXHAUSTED", details, "txn", writes=True)

    assert (error.code, error.facts["reason"]) == ("outcome-unknown", "no-space")
