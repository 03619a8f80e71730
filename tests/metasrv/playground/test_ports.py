"""Ports for programs that come back."""

import socket

import pytest

from metasrv.playground.ports import PORTS, RANGE, free_ports, shares
from metasrv_base.rng import SystemRng


class Middle:
    """Always the same draw."""

    def random(self) -> float:
        return 0.5


def test_given_a_count_when_asked_then_so_many_different_ports_that_can_be_bound() -> None:
    ports = free_ports(20, SystemRng())

    assert len(set(ports)) == 20
    for port in ports:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


def test_given_ports_when_drawn_then_none_is_the_source_of_an_outgoing_connection() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as outgoing,
    ):
        source = outgoing.getsockname()[1]

    assert source >= int(RANGE.read_text().split()[0]) > max(free_ports(50, SystemRng()))


def test_given_shares_when_each_draws_from_its_own_then_no_port_is_of_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = []
    for share in shares(3):
        monkeypatch.setenv(PORTS, share)
        drawn += [free_ports(200, SystemRng())]

    assert max(drawn[0]) < min(drawn[1])
    assert max(drawn[1]) < min(drawn[2])


@pytest.mark.parametrize("text", ["10000", "10000-", "a-b", "10000-20000-3"])
def test_given_a_range_that_is_none_when_ports_are_drawn_then_an_error_names_it(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(PORTS, text)

    with pytest.raises(OSError, match=f"{PORTS} is '{text}'"):
        free_ports(1, SystemRng())


def test_given_a_port_that_is_taken_when_nothing_else_is_drawn_then_it_says_so() -> None:
    (port,) = free_ports(1, Middle())
    with socket.create_server(("127.0.0.1", port)), pytest.raises(OSError, match="not 1 free port"):
        free_ports(1, Middle())
