"""A map above packs is as a dict, through any changes."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv_base.pack_map import Pack, PackMap


class Words(Pack[str]):
    def __init__(self, words: dict[int, str]) -> None:
        self.words = words
        self.made = 0
        """Values that were made."""

    def __contains__(self, number: object) -> bool:
        return number in self.words

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[int]:
        return iter(self.words)

    def get(self, number: int) -> str:
        self.made += 1
        return self.words[number]

    def items(self) -> Iterator[tuple[int, str]]:
        self.made += len(self.words)
        return iter(self.words.items())


NUMBERS = st.integers(0, 9)
WORDS = st.dictionaries(NUMBERS, st.sampled_from("abc"))
CHANGES = st.lists(st.tuples(st.sampled_from(["set", "delete", "taken"]), NUMBERS))


@given(WORDS, WORDS, CHANGES)
def test_given_any_changes_then_a_map_is_as_a_dict_and_the_maps_before_stay(
    packed: dict[int, str], others: dict[int, str], changes: list[tuple[str, int]]
) -> None:
    other = PackMap(Words(others))
    states = [(PackMap(Words(packed)), packed)]
    for what, number in changes:
        words, model = states[-1][0], dict(states[-1][1])
        match what:
            case "set":
                model[number] = "new"
                words = words.set(number, "new")
            case "delete" if number in model:
                del model[number]
                words = words.delete(number)
            case "taken" if number in others:
                model[number] = others[number]
                words = words.taken(other, number)
        states.append((words, model))

    for words, model in states:
        must_be(words, model)


def must_be(words: PackMap[str], model: dict[int, str]) -> None:
    assert len(words) == len(model)
    assert bool(words) == bool(model)
    assert sorted(words) == sorted(model)
    assert sorted(words.items()) == sorted(model.items())
    assert sorted(words.values()) == sorted(model.values())
    for number in range(10):
        assert (number in words) == (number in model)
        assert words.get(number) == model.get(number)
    same = PackMap[str]()
    for number, word in model.items():
        same = same.set(number, word)
    assert words == same
    assert (words == PackMap()) == (not model)


def test_given_a_number_that_is_not_there_when_read_or_deleted_then_it_says_so() -> None:
    words = PackMap(Words({1: "a"})).delete(1)

    with pytest.raises(KeyError):
        words[1]
    with pytest.raises(KeyError):
        words.delete(1)
    with pytest.raises(KeyError):
        words.delete(2)


def test_given_packs_when_changed_counted_and_looked_through_then_no_value_is_made() -> None:
    pack, other = Words({1: "a", 2: "b"}), Words({3: "c"})

    words = PackMap(pack).taken(PackMap(other), 3).set(1, "d").delete(2)

    assert (sorted(words), len(words), 2 in words) == ([1, 3], 2, False)
    assert (pack.made, other.made) == (0, 0)
    assert (words[3], other.made) == ("c", 1)
