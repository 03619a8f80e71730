"""The bearer token before every route of both programs, and whose name it gives."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from base.token import Tokens, hash_of
from dataplane.datanode.main import main as datanode
from metasrv.main import EXIT_CONFIG
from metasrv.main import main as metasrv
from serving.tokens import guarded
from tests.api.rig import Server, follower_of, leader
from tests.api.test_waiting import create_held_up

SECRET = "a-secret-of-more-than-twenty-characters"
TOKENS = Tokens({"anna": hash_of(SECRET)})
BEARER = {"authorization": f"Bearer {SECRET}"}


@asynccontextmanager
async def door(one: Server) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(guarded(one.app, TOKENS))
    async with httpx.AsyncClient(transport=transport, base_url="http://ms-1") as client:
        yield client


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": SECRET},
        {"authorization": f"Basic {SECRET}"},
        {"authorization": f"Bearer {SECRET}x"},
        {"authorization": "Bearer "},
        {"authorization": f"Bearer {hash_of(SECRET)}"},
    ],
    ids=lambda headers: next(iter(headers.values()), "none")[:14],
)
@pytest.mark.case("input 100")
async def test_given_no_right_token_when_asked_then_401_and_nothing_is_done(
    headers: Mapping[str, str],
) -> None:
    async with leader(nodes=0) as one, door(one) as client:
        body = {"enabled": True}
        answer = await client.put("/v1/cluster/maintenance", json=body, headers=headers)

        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"
        assert SECRET not in answer.text
        assert one.term.settings.maintenance is None


@pytest.mark.case("input 100")
async def test_given_a_token_in_the_query_when_asked_then_401() -> None:
    async with leader(nodes=0) as one, door(one) as client:
        for name in ("access_token", "token", "authorization"):
            answer = await client.get("/v1/cluster", params={name: SECRET})
            assert answer.status_code == 401


@pytest.mark.case("input 100")
async def test_given_two_authorizations_when_asked_then_401() -> None:
    async with leader(nodes=0) as one, door(one) as client:
        both = [("authorization", BEARER["authorization"])] * 2

        assert (await client.get("/v1/cluster", headers=both)).status_code == 401


async def test_given_a_token_when_a_follower_passes_it_on_then_who_changed_it_is_known() -> None:
    async with leader(nodes=0) as one:
        transport = httpx.ASGITransport(guarded(one.app, TOKENS))
        async with follower_of(one, transport) as other, door(other) as client:
            body = {"enabled": True}
            answer = await client.put("/v1/cluster/maintenance", json=body, headers=BEARER)

            assert (answer.status_code, answer.json()["changed_by"]) == (200, "anna")


async def test_given_a_token_when_its_holder_steers_under_another_name_then_the_token_counts() -> (
    None
):
    async with leader() as one, door(one) as client:
        where = await create_held_up(one)

        paused = await client.post(f"{where}/pause?by=bob", headers=BEARER)
        one.nodes.gate.set()

        assert [control["by"] for control in paused.json()["controls"]] == ["anna"]


async def test_given_a_probe_without_a_token_then_it_learns_yes_or_no_and_no_more() -> None:
    async with leader(nodes=0) as one, door(one) as client:
        asked = {path: await client.get(path) for path in ("/livez", "/readyz", "/metrics")}

        assert [answer.status_code for answer in asked.values()] == [200, 200, 401]


@pytest.mark.case("input 107")
def test_given_another_address_and_no_tokens_when_started_then_exit_78(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = ("--node-id", "dn-1", "--root", str(tmp_path), "--metasrv", "http://127.0.0.1:1")
    server = ("--server-id", "ms-1", "--data-dir", str(tmp_path))

    codes = metasrv([*server, "--host", "0.0.0.0"]), datanode([*node, "--listen", "0.0.0.0:0"])

    assert codes == (EXIT_CONFIG, EXIT_CONFIG)
    assert capsys.readouterr().err.count("needs a tokens_file") == 2


@pytest.mark.case("input 107")
def test_given_tokens_that_others_can_read_when_started_then_exit_78(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_file = tmp_path / "tokens"
    open_file.write_text(f"anna sha256:{hash_of(SECRET)}\n")
    open_file.chmod(0o644)
    server = ("--server-id", "ms-1", "--data-dir", str(tmp_path))

    assert metasrv([*server, "--tokens-file", str(open_file)]) == EXIT_CONFIG
    assert "others can read it" in capsys.readouterr().err
