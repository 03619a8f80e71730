"""The settings that lead to etcd: unsafe ones are refused, safe ones lead there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keys.store.etcd_calls import Login
from keys.store.kv import Get, Put, Request
from metasrv.program.store_access import StoreAccess
from metasrv.server.main import EXIT_CONFIG, main
from tests.etcd.certificates import SERVER, Authority, serving_flags
from tests.etcd.process import EtcdProcess
from tests.etcd.users import guard

DEADLINE_MS = 5_000
LOCAL, TLS = "http://127.0.0.1:2379", "https://one:2379"
PASSWORD = "correct horse"  # of an etcd that lives for one test


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(PASSWORD + "\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"endpoints": ("127.0.0.1:2379",)}, "URLs"),
        ({"endpoints": ("ftp://127.0.0.1:2379",)}, "URLs"),
        ({"endpoints": (LOCAL, TLS)}, "URLs"),
        ({"endpoints": ("http://127.0.0.1",)}, "a host and a port"),
        ({"endpoints": ("http://127.0.0.1:2379/v3",)}, "a host and a port"),
        ({"endpoints": (LOCAL,), "ca_file": "ca.pem"}, "for https://"),
        ({"endpoints": (TLS, "https://two:2379")}, "name that their certificates bear"),
        ({"endpoints": (TLS,), "cert_file": "cert.pem"}, "belong together"),
        ({"endpoints": (LOCAL,), "user": "ada"}, "belong together"),
        ({"endpoints": (TLS,), "user": "ada", "password_file": "/no/such"}, "No such file"),
    ],
)
def test_given_settings_that_cannot_be_when_checked_then_the_fault_is_told(
    settings: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        StoreAccess(**settings)


@pytest.mark.parametrize("endpoint", ["http://etcd.example:2379", "http://10.0.0.1:2379"])
def test_given_a_password_when_it_would_travel_in_clear_then_that_is_refused(
    secret: Path, endpoint: str
) -> None:
    with pytest.raises(ValueError, match="by https:// only"):
        StoreAccess(endpoints=(endpoint,), user="ada", password_file=secret)

    assert StoreAccess(endpoints=(LOCAL,), user="ada", password_file=secret)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_given_a_secret_that_others_can_reach_when_started_then_the_server_says_so_and_ends(
    secret: Path, tmp_path: Path, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    secret.chmod(mode)
    flags = ["--server-id=m-1", f"--data-dir={tmp_path}", "--etcd-user=ada"]

    assert main([*flags, f"--etcd-password-file={secret}"]) == EXIT_CONFIG

    said = capsys.readouterr().err
    assert "chmod 600" in said
    assert PASSWORD not in said


# A real etcd -----------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority.made(tmp_path / "authority")
    for name in (SERVER, "metasrv"):
        made.issue(name)
    return made


@pytest.fixture
def tls_etcd(tmp_path: Path, authority: Authority) -> Iterator[EtcdProcess]:
    process = EtcdProcess(tmp_path, *serving_flags(authority), scheme="https")
    process.start()
    yield process
    process.kill()


@pytest.mark.etcd
async def test_given_files_of_certificates_when_connected_then_etcd_lets_us_in(
    tls_etcd: EtcdProcess, authority: Authority
) -> None:
    access = StoreAccess(
        endpoints=(tls_etcd.url,),
        ca_file=authority.path("ca.pem"),
        cert_file=authority.path("metasrv.pem"),
        key_file=authority.path("metasrv.key"),
        server_name=SERVER,
    )

    assert await _put_and_read(access) == b"1"


@pytest.mark.etcd
async def test_given_a_password_file_when_connected_then_etcd_lets_us_in(
    tmp_path: Path, secret: Path
) -> None:
    etcd = EtcdProcess(tmp_path)
    etcd.start()
    try:
        await guard(etcd, b"/mine/", Login("ada", PASSWORD))
        access = StoreAccess(endpoints=(etcd.url,), user="ada", password_file=secret)

        assert await _put_and_read(access) == b"1"
    finally:
        etcd.kill()


async def _put_and_read(access: StoreAccess) -> bytes:
    kv = await access.connect(b"/mine/")
    try:
        await kv.txn(Request(writes=(Put(b"a", b"1"),)), deadline_ms=DEADLINE_MS)
        page = await kv.range(Get(b"a"), deadline_ms=DEADLINE_MS)
    finally:
        await kv.close()
    return page.items[0].value
