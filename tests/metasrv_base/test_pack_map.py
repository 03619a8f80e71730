"""A map above packs is as a dict, through any changes."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from metasrv_base.pack_map import Layers, Pack, PackMap


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
WHAT = st.sampled_from(["set", "delete", "taken", "begin", "base", "later"])
CHANGES = st.lists(st.tuples(WHAT, NUMBERS))


def layers_of(words: PackMap[str], *, is_base: bool) -> tuple[Layers[str], tuple[Pack[str], ...]]:
    """All that *words* holds as one base; or its layers, and what changed as a pack above."""
    base = words.layers.base
    if is_base or base is None:
        pack = Words(dict(words.items()))
        return Layers(pack, Map()), (pack,)
    changed = {number: words[number] for number in words.changes if number in words}
    pack, later = Words(changed), words.layers.later
    for number in words.changes:
        if number in changed:
            later = later.set(number, pack)
        elif number in base:
            later = later.set(number, None)
        elif number in later:
            later = later.delete(number)
    return Layers(base, later), (*words.packs, pack)


@given(WORDS, WORDS, CHANGES)
def test_given_any_changes_then_a_map_is_as_a_dict_and_the_maps_before_stay(
    packed: dict[int, str], others: dict[int, str], changes: list[tuple[str, int]]
) -> None:
    other = PackMap(Words(others))
    states = [(PackMap(Words(packed)) if packed else PackMap[str](), packed)]
    before = states[0][0]
    for what, number in changes:
        words, model = states[-1][0], dict(states[-1][1])
        match what:
            case "begin":
                before = words
            case "base" | "later" if words.is_above(before):
                layers, packs = layers_of(before, is_base=what == "base")
                before = words = words.rebased(before, layers, packs)
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


def test_given_an_empty_map_when_one_value_is_taken_then_it_has_no_other() -> None:
    words = PackMap[str]().taken(PackMap(Words({1: "a", 2: "b"})), 1)

    must_be(words, {1: "a"})


def test_given_a_map_put_above_packs_then_what_changed_meanwhile_alone_is_held() -> None:
    before = PackMap(Words({1: "a", 2: "b"})).set(3, "c").delete(1)
    pack = Words({2: "b", 3: "c"})

    after = before.set(4, "d").delete(3).rebased(before, Layers(pack, Map()), (pack,))

    must_be(after, {2: "b", 4: "d"})
    assert dict(after.changes) == {3: None, 4: "d"}
    assert after.packs == (pack,)
    assert not after.is_above(before)


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
