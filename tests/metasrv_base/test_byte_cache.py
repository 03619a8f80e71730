"""The cache keeps what was used last, within its bound."""

from metasrv_base.byte_cache import ByteCache


def test_given_values_up_to_the_bound_when_one_more_comes_then_what_was_used_first_goes() -> None:
    cache = ByteCache[int, str](10)
    cache.put(1, "a", 5)
    cache.put(2, "b", 5)
    assert cache.get(1) == "a"

    cache.put(3, "c", 1)

    assert (cache.get(1), cache.get(2), cache.get(3)) == ("a", None, "c")
    assert cache.size_bytes == 6


def test_given_a_value_when_put_again_then_it_counts_once() -> None:
    cache = ByteCache[int, str](10)
    for size_bytes in (3, 4):
        cache.put(1, "a", size_bytes)

    assert cache.size_bytes == 4


def test_given_a_value_above_the_bound_when_put_then_the_others_stay() -> None:
    cache = ByteCache[int, str](10)
    cache.put(1, "a", 5)

    cache.put(2, "b", 11)

    assert (cache.get(1), cache.get(2), cache.size_bytes) == ("a", None, 5)
