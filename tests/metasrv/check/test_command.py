"""`metasrv check` as a command: exit codes, lines and JSON, on a real etcd and real files."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from keys.store.etcd import EtcdKv
from keys.store.etcd_calls import Login
from metasrv.cli.contexts.contexts import Contexts, NamedService, write_contexts
from metasrv.cli.main import application
from metasrv.cli.tools.check import BLIND, CLEAN, VIOLATED, compared_servers, target_of
from tests.etcd.process import EtcdProcess, free_port
from tests.etcd.users import guard
from tests.metasrv.check.breaking.break_keys import NAME
from tests.metasrv.check.cluster import FLIGHTS, Cluster
from tests.metasrv.check.conftest import furnish


def run(*args: str) -> Result:
    return CliRunner().invoke(application(["check"]), ["check", *args])


def test_given_no_etcd_named_when_checked_then_it_could_not_look() -> None:
    result = run()

    assert result.exit_code == BLIND
    assert "--etcd" in result.stderr


def test_given_no_etcd_there_when_checked_then_it_could_not_look() -> None:
    result = run("--etcd", f"http://127.0.0.1:{free_port()}")

    assert result.exit_code == BLIND
    assert result.stdout == ""


def test_given_a_playground_file_when_read_then_flags_go_before_it(tmp_path: Path) -> None:
    file = tmp_path / "playground.json"
    said = {"etcd": ["http://e:1"], "key_prefix": "p/", "metasrv": ["http://m:1"], "pids": {}}
    file.write_text(json.dumps(said))

    whole = target_of(file, (), None, ())
    other = target_of(file, ("http://e:2",), "q/", ())

    assert (whole.etcd, whole.prefix, whole.metasrv) == (("http://e:1",), "p/", ("http://m:1",))
    assert (other.etcd, other.prefix, other.metasrv) == (("http://e:2",), "q/", ("http://m:1",))


def test_given_a_file_that_is_none_when_checked_then_it_could_not_look(tmp_path: Path) -> None:
    file = tmp_path / "playground.json"
    file.write_text("[]")

    assert run("--playground", str(file)).exit_code == BLIND
    assert run("--playground", str(tmp_path / "absent.json")).exit_code == BLIND


@pytest.mark.parametrize(
    ("metasrv", "playground", "variables", "servers"),
    [
        ("h:1", None, {"METASRV_CONTEXT": "prod", "METASRV_TOKEN": "t"}, (("http://h:1",), "t")),
        ("h:1", Path("p.json"), {}, (("http://h:1",), None)),
        (None, None, {"METASRV_CONTEXT": "prod", "METASRV_TOKEN": "t"}, (("http://p:4620",), None)),
        (None, Path("p.json"), {"METASRV_CONTEXT": "prod"}, ((), None)),
        (None, None, {"METASRV_TOKEN": "t"}, ((), "t")),
    ],
)
def test_given_an_option_a_file_or_a_context_then_the_first_names_the_servers_to_compare_with(
    tmp_path: Path,
    metasrv: str | None,
    playground: Path | None,
    variables: dict[str, str],
    servers: tuple[tuple[str, ...], str | None],
) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path), **variables}
    write_contexts(environment, Contexts().with_context("prod", NamedService("p:4620")))

    assert compared_servers(environment, metasrv, playground) == servers


def test_given_servers_that_are_no_url_when_checked_then_the_usage_is_wrong() -> None:
    result = run("--etcd", "http://127.0.0.1:1", "--metasrv", "ftp://x")

    assert result.exit_code == BLIND
    assert "ftp://x is not a URL" in result.stderr


@pytest.mark.etcd
def test_given_a_server_without_a_scheme_when_checked_then_http_is_meant(
    etcd: str, etcd_prefix: bytes, tmp_path: Path
) -> None:
    where = ("--etcd", f"http://{etcd}", "--prefix", etcd_prefix.decode())
    on_etcd(etcd, etcd_prefix, tmp_path, furnish)
    server = f"127.0.0.1:{free_port()}"

    result = run(*where, "--json", "--metasrv", server)

    assert result.exit_code == CLEAN, result.output
    subjects = {one["subject"] for one in json.loads(result.stdout)["found"]}
    assert f"http://{server}" in subjects


@pytest.mark.etcd
def test_given_an_etcd_with_users_when_checked_then_a_password_file_lets_us_look(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("correct horse")
    secret.chmod(0o600)
    etcd = EtcdProcess(tmp_path)
    etcd.start()
    try:
        asyncio.run(guard(etcd, b"mine/", Login("ada", "correct horse")))
        where = ("--etcd", etcd.url, "--prefix", "mine/")
        nobody = run(*where)
        ada = run(*where, "--etcd-user=ada", f"--etcd-password-file={secret}")
        secret.chmod(0o644)
        careless = run(*where, "--etcd-user=ada", f"--etcd-password-file={secret}")
    finally:
        etcd.kill()

    # The prefix is empty: whoever was let in says so.
    assert "not one key" in ada.stderr
    assert "user name is empty" in nobody.stderr
    assert "chmod 600" in careless.stderr


@pytest.mark.etcd
def test_given_a_real_cluster_when_keys_and_files_are_edited_then_check_names_them(
    etcd: str, etcd_prefix: bytes, tmp_path: Path
) -> None:
    where = ("--etcd", f"http://{etcd}", "--prefix", etcd_prefix.decode())
    on_etcd(etcd, etcd_prefix, tmp_path, furnish)

    clean = run(*where, "--json", "--deep")
    on_etcd(etcd, etcd_prefix, tmp_path, unname)
    (file,) = (tmp_path / "dn-2" / "regions" / f"{FLIGHTS << 32 | 1}-1" / "data").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    broken = run(*where)

    # No node listens: that is said, and is no violation. Their folders are on this host.
    said = json.loads(clean.stdout)
    assert clean.exit_code == CLEAN, clean.output
    assert {one["rule"] for one in said["found"]} == {"unseen"}
    assert (said["violations"], said["rows"], said["regions"]) == (0, 380, 4)
    assert broken.exit_code == VIOLATED
    lines = [line for line in broken.stdout.splitlines() if line.startswith("violation")]
    assert [line.split(": ")[0] for line in lines] == [
        f"violation table-name {NAME}",
        f"violation file-intact {file}",
    ]


def on_etcd(
    etcd: str, prefix: bytes, folder: Path, act: Callable[[Cluster], Awaitable[None]]
) -> None:
    async def acted() -> None:
        kv = await EtcdKv.connect([etcd], prefix)
        cluster = Cluster(kv, folder)
        await act(cluster)
        for region in cluster.regions.values():
            region.close()
        await kv.close()

    asyncio.run(acted())


async def unname(cluster: Cluster) -> None:
    """As `etcdctl del`."""
    await cluster.delete(NAME)
