"""The bearer token before every route of both programs, and whose name it gives."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from dataplane.datanode.main import main as datanode
from metasrv.server.main import EXIT_CONFIG
from metasrv.server.main import main as metasrv
from metasrv_base.token import Tokens, hash_of, line_of
from metasrv_base.wire.http.asgi import Message, Scope
from serving.guard import Bounds
from serving.tokens import TokenBook, guarded, secrets_of
from tests.metasrv.api.held_up import create_held_up
from tests.metasrv.api.rig import Server, beat, follower_of, leader, registration
from tests.metasrv.service.catalog.watch import WATCH
from tests.serving.sockets import PATIENCE_S, serving

SECRET = "a-secret-of-more-than-twenty-characters"
TOKENS = Tokens({hash_of(SECRET): "anna"})
BEARER = {"authorization": f"Bearer {SECRET}"}


SECRETS = {name: f"a-secret-of-{name}-with-enough-characters" for name in ("anna", "bob", "dn-1")}


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {SECRETS[name]}"}


def tokens_of(*names: str) -> Tokens:
    return Tokens({hash_of(SECRETS[name]): name for name in names})


def tokens_file(folder: Path, *names: str) -> Path:
    path = folder / "tokens"
    path.write_text("".join(line_of(name, SECRETS[name]) + "\n" for name in names))
    path.chmod(0o600)
    return path


@asynccontextmanager
async def door(one: Server, book: TokenBook | None = None) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(guarded(one.app, book or TokenBook(TOKENS)))
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


@pytest.mark.case("input 100")
async def test_given_a_token_that_was_taken_away_when_asked_then_401_without_a_restart(
    tmp_path: Path,
) -> None:
    book = TokenBook.of_files(tokens_file(tmp_path, "anna", "bob"), None)
    async with leader(nodes=0) as one, door(one, book) as client:
        before = await client.get("/v1/cluster", headers=bearer("anna"))
        tokens_file(tmp_path, "bob")
        book.reload()
        after = [await client.get("/v1/cluster", headers=bearer(name)) for name in ("anna", "bob")]

    assert before.status_code == 200
    assert [answer.status_code for answer in after] == [401, 200]


async def test_given_a_file_that_is_wrong_when_read_again_then_the_tokens_stay(
    tmp_path: Path,
) -> None:
    book = TokenBook.of_files(tokens_file(tmp_path, "anna"), None)
    (tmp_path / "tokens").write_text("nonsense\n")

    with pytest.raises(ValueError, match="line 1"):
        book.reload()

    assert book.holder(SECRETS["anna"]) == "anna"


async def test_given_a_client_when_it_asks_what_programs_ask_then_403_and_it_is_counted() -> None:
    refused: list[int] = []
    book = TokenBook(tokens_of("anna"), tokens_of("dn-1"))
    async with leader(nodes=0) as one:
        transport = httpx.ASGITransport(guarded(one.app, book, refused.append))
        async with httpx.AsyncClient(transport=transport, base_url="http://ms-1") as client:
            url = "/internal/v1/nodes/dn-9/register"
            answers = [
                await client.post(url, json={}, headers=bearer(name)) for name in ("anna", "dn-1")
            ]
            answers += [await client.get("/v1/cluster", headers=bearer(name)) for name in SECRETS]

    assert [answer.status_code for answer in answers] == [403, 422, 200, 401, 200]
    assert answers[0].json()["code"] == "cluster-token-needed"
    assert refused == [403, 401]


@pytest.mark.case("input 91")
async def test_given_a_node_of_one_token_when_another_program_speaks_for_it_then_403() -> None:
    book = TokenBook(tokens_of("anna"), tokens_of("dn-1", "bob"))
    async with leader(nodes=0) as one, door(one, book) as client:
        path = "/internal/v1/nodes/dn-1"
        hello, beating = registration("dn-1").model_dump(), beat("dn-1").model_dump()
        said = {}
        for name in ("dn-1", "bob"):
            asked = await client.post(f"{path}/register", json=hello, headers=bearer(name))
            heard = await client.put(f"{path}/heartbeat", json=beating, headers=bearer(name))
            said[name] = [asked.status_code, heard.status_code]
        to = {"principal": "bob"}
        moved = await client.post("/v1/nodes/dn-1/rebind", json=to, headers=bearer("anna"))
        after = {
            name: await client.put(f"{path}/heartbeat", json=beating, headers=bearer(name))
            for name in said
        }

    assert said == {"dn-1": [200, 200], "bob": [403, 403]}
    assert heard.json()["code"] == "node-bound"
    assert "token of dn-1; this one is of bob" in heard.json()["detail"]
    assert (moved.status_code, moved.json()["principal"]) == (200, "bob")
    assert {name: answer.status_code for name, answer in after.items()} == {"dn-1": 403, "bob": 200}


@pytest.mark.parametrize("principal", ["", "a b", "x" * 65, "\u00e9"])
async def test_given_no_name_when_a_node_is_rebound_then_422(principal: str) -> None:
    async with leader(nodes=1) as one:
        body = {"principal": principal}
        answer = await one.client.post("/v1/nodes/dn-1/rebind", json=body)

    assert answer.status_code == 422, answer.text


def test_given_orders_when_judged_then_only_programs_may_give_them() -> None:
    book = TokenBook(tokens_of("anna"), tokens_of("dn-1"))

    may = {
        (name, path): book.may(SECRETS[name], path)
        for name in ("anna", "dn-1")
        for path in ("/node/v1/orders", "/node/v1/regions/1/batch", "/v1/tables")
    }

    assert [key for key, allowed in may.items() if not allowed] == [("anna", "/node/v1/orders")]


async def hang_up() -> None:
    os.kill(os.getpid(), signal.SIGHUP)
    for _ in range(3):  # the loop turns: it hears of the signal, and calls the handler
        await asyncio.to_thread(int)
    asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)


@dataclass(frozen=True)
class Files:
    tokens_file: Path | None = None
    cluster_tokens_file: Path | None = None
    token_file: Path | None = None


async def test_given_a_hangup_when_it_comes_then_both_files_are_read_again(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text(SECRETS["dn-1"])
    mine.chmod(0o600)
    book, own = secrets_of(Files(tokens_file(tmp_path, "anna"), token_file=mine))
    assert book is not None
    tokens_file(tmp_path, "bob")
    mine.write_text(SECRETS["bob"])

    await hang_up()

    assert book.holder(SECRETS["anna"]) is None
    assert own.headers == bearer("bob")


async def test_given_a_file_that_is_wrong_when_a_hangup_comes_then_the_other_is_read(
    tmp_path: Path,
) -> None:
    mine = tmp_path / "mine"
    mine.write_text(SECRETS["dn-1"])
    mine.chmod(0o600)
    book, own = secrets_of(Files(tokens_file(tmp_path, "anna"), token_file=mine))
    assert book is not None
    (tmp_path / "tokens").write_text("nonsense")
    mine.write_text(SECRETS["bob"])

    with capture_logs() as logs:
        await hang_up()

    assert book.holder(SECRETS["anna"]) == "anna"
    assert own.headers == bearer("bob")
    assert [one["event"] for one in logs] == ["tokens_reloaded", "tokens_not_reloaded"]


async def test_given_no_files_when_a_program_starts_then_a_hangup_ends_it_as_ever() -> None:
    before = signal.getsignal(signal.SIGHUP)

    assert secrets_of(Files())[0] is None
    assert signal.getsignal(signal.SIGHUP) is before


async def told_of(name: str, lines: AsyncIterator[str]) -> bool:
    """Whether a line names it before the stream ends."""
    try:
        async for line in lines:
            if f'"{name}"' in line:
                return True
    except httpx.RemoteProtocolError:
        return False
    return False


@pytest.mark.parametrize("left", ["anna", "bob"])
async def test_given_a_stream_when_tokens_are_read_again_then_a_revoked_one_is_told_no_more(
    tmp_path: Path, left: str
) -> None:
    book = TokenBook.of_files(tokens_file(tmp_path, "anna", "bob"), None)
    async with (
        leader() as one,
        serving(Bounds(None), guarded(one.app, book)) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
        asyncio.timeout(PATIENCE_S),
        client.stream("GET", WATCH, headers=bearer("anna")) as answer,
    ):
        lines = answer.aiter_lines()
        await anext(lines)
        tokens_file(tmp_path, left)
        book.reload()
        await one.make("news")

        assert await told_of("news", lines) is (left == "anna")


async def test_given_a_token_when_a_follower_passes_it_on_then_who_changed_it_is_known() -> None:
    async with leader(nodes=0) as one:
        transport = httpx.ASGITransport(guarded(one.app, TokenBook(TOKENS)))
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


PAGES = ("/", "/docs", "/docs/start.js", "/openapi.json", "/problems/unauthenticated")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.slow
async def test_given_a_browser_without_a_token_then_it_reads_the_pages_about_the_program(
    path: str,
) -> None:
    async with leader(nodes=0) as one, door(one) as client:
        answers = [await client.request(method, path) for method in ("GET", "HEAD", "POST")]

        assert [answer.status_code for answer in answers] == [200, 200, 401]


@pytest.mark.parametrize(
    "path",
    [
        "/version",
        "/v1/cluster",
        "/problems",
        "/problems/../v1/cluster",
        "/docs/../version",
        "//docs",
    ],
)
async def test_given_no_token_when_a_path_only_looks_like_a_page_then_401(
    path: str,
) -> None:
    async with leader(nodes=0) as one:
        asked: Scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
            "query_string": b"", "headers": [(b"host", b"ms-1")], "scheme": "http",
            "server": ("ms-1", 80), "client": ("127.0.0.1", 1), "http_version": "1.1",
            "asgi": {"version": "3.0"}, "root_path": "",
        }  # fmt: skip
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await guarded(one.app, TokenBook(TOKENS))(asked, receive, send)

    assert sent[0]["status"] == 401


@pytest.mark.case("input 107")
def test_given_another_address_and_no_tokens_when_started_then_exit_78(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = ("--node-id", "dn-1", "--root", str(tmp_path), "--metasrv", "http://127.0.0.1:1")
    server = ("--server-id", "ms-1", "--data-dir", str(tmp_path))

    codes = metasrv([*server, "--listen", "0.0.0.0:0"]), datanode([*node, "--listen", "0.0.0.0:0"])

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
