"""Settings of a datanode: where each comes from, and what is refused before the start."""

from pathlib import Path

import pytest

from dataplane.datanode.config import DatanodeConfig
from dataplane.datanode.main import EXIT_CONFIG, main

FLAGS = {"node_id": "dn-1", "root": "/n", "metasrv": "http://127.0.0.1:1"}


def test_given_flag_environment_and_file_when_read_then_in_that_order(tmp_path: Path) -> None:
    toml = tmp_path / "metasrv.toml"
    toml.write_text('[datanode]\nzone = "file"\nflush_age_ms = 1000\nmemtable_bytes = 65536\n')
    environment = {"METASRV_DATANODE_ZONE": "environment"}

    config = DatanodeConfig.read({**FLAGS, "memtable_bytes": 131072}, environment, toml)

    assert (config.zone, config.flush_age_ms, config.memtable_bytes) == (
        "environment",
        1000,
        131072,
    )


@pytest.mark.parametrize(
    "change",
    [
        {"listen": "0.0.0.0:0"},
        {"listen": "127.0.0.1:70000"},
        {"root": "relative"},
        {"root": "/n/../m"},
        {"root": "/"},
        {"shared_roots": "/a,relative"},
        {"shared_roots": "/"},
        {"node_id": "dn 1"},
        {"node_id": ""},
        {"metasrv": ""},
        {"metasrv": "ftp://x"},
        {"memtable_bytes": 1},
        {"zone": "a/b"},
        {"fetch_bytes_per_s": 1_000},
        {"fetch_bytes_per_s": -1},
        {"unknown": 1},
    ],
    ids=str,
)
def test_given_an_unsafe_setting_when_read_then_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        DatanodeConfig.read({**FLAGS, **change}, {}, None)


def test_given_an_unknown_variable_when_read_then_refused() -> None:
    with pytest.raises(ValueError, match="zoen"):
        DatanodeConfig.read(FLAGS, {"METASRV_DATANODE_ZOEN": "z"}, None)


def test_given_an_unknown_name_in_the_file_when_read_then_refused(tmp_path: Path) -> None:
    toml = tmp_path / "metasrv.toml"
    toml.write_text("[datanode]\nzoen = 1\n")

    with pytest.raises(ValueError, match="zoen"):
        DatanodeConfig.read(FLAGS, {}, toml)


def test_given_unsafe_flags_when_started_then_it_says_so_and_exits_78(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["--node-id", "dn-1", "--root", "/n", "--metasrv", "x", "--listen", "0.0.0.0:1"])

    assert code == EXIT_CONFIG
    assert "needs a tokens_file" in capsys.readouterr().err
