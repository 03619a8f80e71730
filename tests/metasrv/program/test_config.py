"""Where a server's settings come from, and which word counts."""

from pathlib import Path

import pytest

from metasrv.program.config import ServerConfig
from metasrv.server.main import EXIT_CONFIG, main


def flags(tmp_path: Path) -> dict[str, str]:
    return {"server_id": "ms-1", "data_dir": str(tmp_path)}


def test_given_file_environment_and_flags_then_the_nearer_word_counts(
    tmp_path: Path,
) -> None:
    toml = tmp_path / "metasrv.toml"
    toml.write_text(
        '[server]\nqueue_max = 7\nrunning_max = 7\nrepair_max = 7\netcd = ["http://e:1"]\n'
    )
    environment = {"METASRV_SERVER_RUNNING_MAX": "8", "METASRV_SERVER_REPAIR_MAX": "8"}

    config = ServerConfig.read({**flags(tmp_path), "repair_max": 9}, environment, toml)

    assert (config.queue_max, config.running_max, config.repair_max) == (7, 8, 9)
    assert config.etcd == ["http://e:1"]
    assert ServerConfig.read(flags(tmp_path), {}, None).queue_max == 10_000


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
        ("listen", "127.0.0.1:65536", "listen: a host, and a port"),
    ],
)
def test_given_an_unsafe_setting_when_started_then_exit_78_and_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, value: str, said: str
) -> None:
    server = ("--server-id", "ms-1", "--data-dir", str(tmp_path))

    assert main([*server, f"--{name}", value]) == EXIT_CONFIG
    assert said in capsys.readouterr().err


def test_given_several_faults_when_started_then_each_names_its_flag_and_variable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METASRV_SERVER_PHI_TRESHOLD", "9")

    assert main(["--server-id", "ms-1", "--running-max", "none"]) == EXIT_CONFIG

    told = capsys.readouterr().err.splitlines()
    assert sorted(told) == [
        "data_dir: it is required: give --data-dir or METASRV_SERVER_DATA_DIR",
        "phi_treshold: there is no such setting; did you mean phi_threshold?",
        "running_max: it must be a whole number, not none",
    ]


@pytest.mark.parametrize("given", ["http://a:1, http://b:1", ["http://a:1", "http://b:1"]])
def test_given_a_list_with_commas_or_as_a_list_then_it_is_the_same(
    tmp_path: Path, given: object
) -> None:
    assert ServerConfig.read({**flags(tmp_path), "etcd": given}, {}, None).etcd == [
        "http://a:1",
        "http://b:1",
    ]


def test_given_the_client_s_variables_then_they_are_none_of_the_server(tmp_path: Path) -> None:
    environment = {"METASRV_URL": "http://a:1", "METASRV_TOKEN_FILE": "/nowhere"}

    assert ServerConfig.read(flags(tmp_path), environment, None).token_file is None
