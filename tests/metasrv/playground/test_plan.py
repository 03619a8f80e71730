"""The plan of a playground: pure."""

from pathlib import Path

import pytest

from metasrv.playground.plan import PlaygroundOptions, plan, ports_needed

DATA = Path("/data")
PORTS = list(range(5001, 5020))


def test_given_the_defaults_then_etcd_comes_first_and_each_has_a_port_of_its_own() -> None:
    settings = PlaygroundOptions(DATA)

    programs = plan(settings, "/bin/etcd", PORTS)

    assert [one.id for one in programs] == ["etcd", "m-1", "dn-1", "dn-2", "dn-3"]
    assert len({one.url for one in programs}) == 5
    assert ports_needed(settings) == 6
    assert all(one.folder.parent == DATA for one in programs)
    assert all(word.find("0.0.0.0") < 0 for one in programs for word in one.argv)


def test_given_several_metasrvs_then_datanodes_know_them_all_and_the_port_is_the_first_ones() -> (
    None
):
    programs = plan(PlaygroundOptions(DATA, metasrvs=2, datanodes=1, port=4000), "/bin/etcd", PORTS)

    first, second, node = programs[1:]
    assert first.url == "http://127.0.0.1:4000"
    assert f"--metasrv={first.url},{second.url}" in node.argv
    assert "--root=/data/dn-1/root" in node.argv


def test_given_frontends_then_they_know_every_metasrv_and_come_last() -> None:
    settings = PlaygroundOptions(
        DATA, metasrvs=2, datanodes=1, frontends=2, frontend_flags={"x": "y"}
    )

    programs = plan(settings, "/bin/etcd", PORTS)

    assert [one.id for one in programs[-2:]] == ["fe-1", "fe-2"]
    assert f"--metasrv={programs[1].url},{programs[2].url}" in programs[-1].argv
    assert "--x=y" in programs[-1].argv
    assert ports_needed(settings) == len(programs) + 1


def test_given_zones_then_datanodes_are_in_them_in_turn() -> None:
    settings = PlaygroundOptions(DATA, datanodes=4, frontends=2, zones=3)

    programs = plan(settings, "/bin/etcd", PORTS)

    zones = [word for one in programs for word in one.argv if word.startswith("--zone=")]
    assert zones == [f"--zone=z{number}" for number in (1, 2, 3, 1, 1, 2)]


def test_given_one_zone_then_it_is_named_local() -> None:
    programs = plan(PlaygroundOptions(DATA, datanodes=2), "/bin/etcd", PORTS)

    assert all("--zone=local" in one.argv for one in programs if one.role == "datanode")


def test_given_an_etcd_that_is_there_then_none_is_started() -> None:
    settings = PlaygroundOptions(DATA, etcd=("http://127.0.0.1:2379", "http://127.0.0.1:3379"))

    programs = plan(settings, "", PORTS)

    assert [one.role for one in programs] == ["metasrv", *["datanode"] * 3]
    assert "--etcd=http://127.0.0.1:2379,http://127.0.0.1:3379" in programs[0].argv


def test_given_more_flags_then_they_are_on_the_command_lines() -> None:
    settings = PlaygroundOptions(
        DATA, metasrv_flags={"heartbeat-ms": "500"}, datanode_flags={"memtable-bytes": "65536"}
    )

    programs = plan(settings, "/bin/etcd", PORTS)

    assert "--heartbeat-ms=500" in programs[1].argv
    assert "--memtable-bytes=65536" in programs[2].argv


@pytest.mark.parametrize(
    "settings",
    [
        PlaygroundOptions(Path("relative")),
        PlaygroundOptions(DATA, metasrvs=0),
        PlaygroundOptions(DATA, metasrvs=10),
        PlaygroundOptions(DATA, datanodes=-1),
        PlaygroundOptions(DATA, frontends=17),
        PlaygroundOptions(DATA, zones=0),
        PlaygroundOptions(DATA, datanodes=2, zones=3),
        PlaygroundOptions(DATA, metasrvs=0, datanodes=0, frontends=1),
        PlaygroundOptions(DATA, etcd=("127.0.0.1:2379",)),
        PlaygroundOptions(DATA, etcd=("http://127.0.0.1:2379",), reset=True),
    ],
)
def test_given_what_cannot_be_then_it_is_said(settings: PlaygroundOptions) -> None:
    assert list(settings.faults())


def test_given_no_datanodes_then_nothing_is_wrong() -> None:
    assert not list(PlaygroundOptions(DATA, datanodes=0).faults())
    assert not list(PlaygroundOptions(DATA, metasrvs=0, datanodes=0).faults())
