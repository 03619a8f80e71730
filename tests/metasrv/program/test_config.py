"""Where a server's settings come from, and which word counts."""

from pathlib import Path

import pytest

from metasrv.program.config import read_config
from metasrv.server.main import EXIT_CONFIG, main


def flags(tmp_path: Path) -> dict[str, str]:
    return {"server_id": "ms-1", "data_dir": str(tmp_path)}


def test_given_file_environment_and_flags_then_the_nearer_word_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = tmp_path / "metasrv.toml"
    toml.write_text(
        '[server]\nqueue_max = 7\nrunning_max = 7\nrepair_max = 7\netcd = ["http://e:1"]\n'
    )
    monkeypatch.setenv("METASRV_RUNNING_MAX", "8")
    monkeypatch.setenv("METASRV_REPAIR_MAX", "8")

    config = read_config({**flags(tmp_path), "repair_max": 9}, toml)

    assert (config.queue_max, config.running_max, config.repair_max) == (7, 8, 9)
    assert config.etcd == ["http://e:1"]
    assert read_config(flags(tmp_path), None).queue_max == 10_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\nqueue_mx = 1\n", "queue_mx"),
        ("server = 1\n", "is not a table"),
        ("[server\n", "line 1"),
        (None, "No such file"),
    ],
    ids=["unknown", "no table", "no toml", "no file"],
)
@pytest.mark.case("input 107")
def test_given_a_file_that_means_nothing_when_started_then_exit_78_and_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    toml = tmp_path / "metasrv.toml"
    if text is not None:
        toml.write_text(text)
    server = ("--server-id", "ms-1", "--data-dir", str(tmp_path), "--config", str(toml))

    assert main(server) == EXIT_CONFIG
    assert said in capsys.readouterr().err


@pytest.mark.case("input 107")
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("keep-alive-ms", "1700", "leader_ttl_ms must hold three keep_alive_ms"),
        ("heartbeat-ms", "3334", "region_lease_ms must hold three heartbeat_ms"),
        (
            "transaction-age-max-ms",
            "15000",
            "transaction_age_max_ms must be below schema_lease_ms",
        ),
        ("schema-lease-ms", "10000", "transaction_age_max_ms must be below schema_lease_ms"),
        ("store-deadline-ms", "5000", "store_deadline_ms must be below leader_ttl_ms"),
        ("leader-ttl-ms", "10001", "schema_lease_ms must hold leader_ttl_ms and store_deadline_ms"),
        ("server-id", "a b", "server_id"),
        ("port", "65536", "port"),
    ],
)
def test_given_an_unsafe_setting_when_started_then_exit_78_and_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, value: str, said: str
) -> None:
    server = ("--server-id", "ms-1", "--data-dir", str(tmp_path))

    assert main([*server, f"--{name}", value]) == EXIT_CONFIG
    assert said in capsys.readouterr().err
