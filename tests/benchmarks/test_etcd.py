"""Writes of a comparison go to the member of etcd that leads."""

import pytest

from benchmarks.etcd import leader_of


def status(member: str, leader: str | None) -> dict[str, object]:
    """An answer of a member; one that knows no leader leaves it out."""
    answer: dict[str, object] = {"header": {"member_id": member}}
    return answer if leader is None else {**answer, "leader": leader}


@pytest.mark.parametrize("leader", ["1", "2", "3"])
def test_given_members_that_agree_then_the_leader_is_the_one_they_name(leader: str) -> None:
    statuses = {f"http://m{number}": status(number, leader) for number in "123"}

    assert leader_of(statuses) == f"http://m{leader}"


@pytest.mark.parametrize(
    "leaders", [("1", "1", "2"), ("1", "1", None), (None, None, None), ("4", "4", "4")]
)
def test_given_members_that_do_not_agree_or_name_nobody_then_there_is_no_leader(
    leaders: tuple[str | None, ...],
) -> None:
    statuses = {
        f"http://m{number}": status(str(number), leader) for number, leader in enumerate(leaders, 1)
    }

    assert leader_of(statuses) is None
