"""`metasrv table` and its siblings: a change that is sent again is done once."""

import pytest

from metasrv_base.errors import Refused
from tests.metasrv.cli.answers import TABLES
from tests.metasrv.cli.conftest import Run
from tests.metasrv.cli.rest import Rest

SCHEMAS = "/v1/catalogs/main/schemas"
CHANGES = {
    "table create t --column id:int64 --key id": ("POST", TABLES),
    "table rename t u": ("POST", f"{TABLES}/t/rename"),
    "table alter t --drop-column a": ("POST", f"{TABLES}/t/alter"),
    "table drop t": ("DELETE", f"{TABLES}/t"),
    "table undrop t": ("POST", f"{TABLES}/t/undrop"),
    "table truncate t --yes": ("POST", f"{TABLES}/t/truncate"),
    "index create t i --column a": ("POST", f"{TABLES}/t/indexes"),
    "index validate t i": ("POST", f"{TABLES}/t/indexes/i/validate"),
    "index drop t i": ("DELETE", f"{TABLES}/t/indexes/i"),
    "schema create s": ("POST", SCHEMAS),
    "schema drop s": ("DELETE", f"{SCHEMAS}/s"),
    "catalog create c": ("POST", "/v1/catalogs"),
    "catalog drop c": ("DELETE", "/v1/catalogs/c"),
    "node drain dn-1 --reason x": ("POST", "/v1/nodes/dn-1/drain"),
    "failover run dn-1": ("POST", "/v1/failovers"),
}


@pytest.mark.parametrize("words", CHANGES)
def test_given_a_key_when_a_change_is_asked_for_then_it_is_sent_with_it(
    run: Run, rest: Rest, words: str
) -> None:
    rest.answers[CHANGES[words]] = Refused("invalid-request", expected="nothing")

    run(*words.split(), "--idempotency-key", "k-1", "--metasrv", rest.url)
    run(*words.split(), "--metasrv", rest.url)

    sent = [one.key for one in rest.asked if (one.method, one.path) == CHANGES[words]]
    assert sent[0] == "k-1"
    assert sent[1] not in (None, "", "k-1")
