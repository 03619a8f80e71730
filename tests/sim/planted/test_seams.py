"""Planted mistakes of the simulation stand where the code still comes by."""

import pytest

from keys.store.kv import Delete, Request
from tests.sim.planted.mistakes import BUGS, Bugs
from tests.sim.planted.seams import ALTER, fits


class Sound:
    def does(self, much: int) -> int:
        return much

    @property
    def is_so(self) -> bool:
        return True


WRONG = Bugs(
    alter=lambda request: Request() if request.writes else request,
    patches=(
        (Sound, "does", lambda self, much: 2 * much),
        (Sound, "is_so", property(lambda self: False)),
    ),
)


@pytest.mark.parametrize("name", BUGS)
def test_given_a_mistake_then_it_is_called_as_what_stands_there(name: str) -> None:
    assert [patch for patch in BUGS[name].patches if not fits(patch)] == []


def test_given_mistakes_when_the_code_comes_to_some_then_the_other_seams_are_known() -> None:
    reached = set[str]()
    watched = WRONG.watched(reached)

    with watched.planted():
        assert (Sound().does(2), watched.alter(Request())) == (4, Request())

    assert Sound().does(2) == 2
    assert WRONG.seams - reached == {"Sound.is_so", ALTER}


def test_given_mistakes_when_the_code_comes_to_all_then_no_seam_is_left() -> None:
    reached = set[str]()
    watched = WRONG.watched(reached)

    with watched.planted():
        assert (Sound().does(2), Sound().is_so) == (4, False)
        watched.alter(Request(writes=(Delete(b"k"),)))

    assert WRONG.seams == reached


def test_given_a_name_that_is_gone_when_a_mistake_is_put_there_then_it_is_an_error() -> None:
    with pytest.raises(KeyError), Bugs(patches=((Sound, "did", print),)).planted():
        raise AssertionError("planted")


@pytest.mark.parametrize(
    ("planted", "is_so"),
    [
        (lambda self, much: much, True),
        (lambda self, *asked: 0, True),
        (lambda self, much, more=0: much, True),
        (lambda self: 0, False),
        (lambda self, much, more: much, False),
        (lambda self, *, much: much, False),
    ],
)
def test_given_a_mistake_then_it_fits_if_it_can_be_called_so(planted: object, is_so: bool) -> None:
    assert fits((Sound, "does", planted)) is is_so
