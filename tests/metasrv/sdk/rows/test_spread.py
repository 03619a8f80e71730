"""The choice of the first frontend, as counts: equal ones share, slow and dead ones are avoided."""

from collections import Counter

from metasrv.sdk.rows.spread import REST, Spread

FOUR = ("a", "b", "c", "d")


def test_given_equal_servers_when_asked_in_turn_then_each_has_its_share() -> None:
    spread = Spread(FOUR)

    first = Counter(spread.order(0.0)[0] for _ in range(400))

    assert first == dict.fromkeys(FOUR, 100)


def test_given_a_server_that_does_not_answer_yet_when_others_do_then_it_is_given_no_more() -> None:
    spread, asked = Spread(FOUR), Counter[str]()

    with spread.asking("b"):
        for _ in range(300):
            first = spread.order(0.0)[0]
            asked[first] += 1
            with spread.asking(first):
                pass

    assert asked == {"a": 100, "c": 100, "d": 100}


def test_given_a_dead_server_when_time_passes_then_it_is_asked_ever_less_often() -> None:
    spread, asked = Spread(FOUR), Counter[str]()

    for second in range(300):
        first = spread.order(float(second))[0]
        asked[first] += 1
        if first == "c":
            spread.failed("c", float(second))

    assert 0 < asked["c"] <= 10
    assert all(asked[one] > 60 for one in "abd")


def test_given_all_have_failed_then_all_are_still_there_to_be_asked() -> None:
    spread = Spread(FOUR)
    for one in FOUR:
        spread.failed(one, 0.0)

    assert set(spread.order(1.0)) == set(FOUR)


def test_given_a_server_that_answers_again_then_it_takes_its_turn() -> None:
    spread = Spread(("a", "b"))
    spread.failed("a", 0.0)
    resting = {spread.order(1.0)[0] for _ in range(4)}
    rested = {spread.order(REST.first_ms / 1000)[0] for _ in range(4)}
    spread.failed("a", 6.0)
    spread.answered("a")

    assert resting == {"b"}
    assert rested == {"a", "b"}
    assert {spread.order(6.0)[0] for _ in range(4)} == {"a", "b"}


def test_given_other_servers_then_what_is_known_of_those_that_stay_is_kept() -> None:
    spread = Spread(("a", "b"))
    spread.failed("a", 0.0)
    spread.replace(("a", "c"))
    kept = {spread.order(1.0)[0] for _ in range(4)}
    spread.replace(())
    nobody = spread.order(1.0)
    spread.replace(("a",))

    assert kept == {"c"}
    assert nobody == ()
    assert spread.order(1.0) == ("a",)
