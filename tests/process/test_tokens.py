"""A whole cluster that asks for tokens: servers, nodes and clients show theirs to each other."""

from pathlib import Path

import httpx
import pytest

from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.sdk.connections import connect_async
from metasrv_base.errors import MetaError
from metasrv_base.token import line_of, new_token
from tests.process.harness.rig import CALM, table_spec

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]
STRANGERS: tuple[dict[str, str], ...] = (
    {},
    {"authorization": "Bearer wrong"},
    {"authorization": "Basic YTpi"},
)


def secret(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


async def test_given_tokens_when_servers_nodes_and_clients_show_theirs_then_nobody_else_gets_in(
    tmp_path: Path,
) -> None:
    programs = ("servers", "nodes")
    tokens = {name: new_token() for name in (*programs, "ada")}
    lines = {name: line_of(name, token) for name, token in tokens.items()}
    taken = {
        "tokens-file": secret(tmp_path / "tokens", lines["ada"]),
        "cluster-tokens-file": secret(
            tmp_path / "cluster", "\n".join(lines[name] for name in programs)
        ),
    }
    shown = {name: secret(tmp_path / name, tokens[name]) for name in programs}
    settings = PlaygroundOptions(
        tmp_path / "playground",
        metasrvs=2,
        datanodes=1,
        frontends=1,
        metasrv_flags={**CALM, **taken, "token-file": shown["servers"]},
        datanode_flags={**taken, "token-file": shown["nodes"]},
        frontend_flags={**taken, "token-file": shown["nodes"]},
    )
    async with (
        Playground(settings) as playground,
        httpx.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        for number, url in enumerate(playground.metasrv_urls):  # one of them asks the other
            async with connect_async(url, token=tokens["ada"], patience_ms=60_000) as db:
                await db.tables.create(table_spec(f"t{number}"))
                await db.table(f"t{number}").insert([{"id": 1, "word": "mine"}])
                rows = await db.table(f"t{number}").to_arrow()
                made = (await db.procedures.list())[0]
            assert rows.to_pylist() == [{"id": 1, "word": "mine"}]
            assert made.submitted_by == "ada"
        frontends = tuple(playground.frontend_urls.values())
        urls = (*playground.metasrv_urls, *playground.datanode_urls.values(), *frontends)
        for url in urls:
            for path in ("/v1/cluster", "/node/v1/regions", "/metrics"):
                answers = [await http.get(url + path, headers=headers) for headers in STRANGERS]
                assert {answer.status_code for answer in answers} == {401}, url + path
        ada = {"authorization": f"Bearer {tokens['ada']}"}
        for url, path in ((urls[0], "/internal/v1/settings"), (urls[2], "/node/v1/orders")):
            refused = await http.post(url + path, headers=ada)
            assert (refused.status_code, refused.json()["code"]) == (403, "cluster-token-needed")
        node = (await http.get(urls[0] + "/v1/nodes", headers=ada)).json()["nodes"][0]
        assert node["principal"] == "nodes"
        async with connect_async(playground.metasrv_urls[0], token="wrong") as stranger:
            with pytest.raises(MetaError, match="unauthenticated"):
                await stranger.tables.list()
