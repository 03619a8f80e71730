"""Addresses of nodes, and the digest that tells two books apart."""

from hypothesis import given
from hypothesis import strategies as st

from metasrv_base.address_book import AddressBook

NODES = st.sampled_from(["dn-1", "dn-2", "dn-3"])
URLS = st.sampled_from(["http://a", "http://b"])


@given(st.lists(st.tuples(NODES, st.none() | URLS)), st.dictionaries(NODES, URLS))
def test_given_any_changes_when_addresses_are_the_same_then_so_is_the_digest(
    changes: list[tuple[str, str | None]], others: dict[str, str]
) -> None:
    changed, whole = AddressBook(), AddressBook()
    for node, url in changes:
        changed.set(node, url)
    whole.replace(others)
    equal = AddressBook()
    equal.replace(changed.urls)

    assert equal.digest == changed.digest
    assert (whole.digest == changed.digest) == (whole.urls == changed.urls)
    whole.replace(changed.urls)
    assert (whole.digest, whole.urls) == (changed.digest, changed.urls)
    assert [whole.get(node) for node in changed.urls] == list(changed.urls.values())


def test_given_a_node_that_is_not_in_it_then_the_other_address_counts() -> None:
    book = AddressBook()
    book.set("dn-1", "http://a")

    assert (book.get("dn-1", "http://old"), book.get("dn-2", "http://old")) == (
        "http://a",
        "http://old",
    )
