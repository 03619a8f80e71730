"""Addresses of nodes, with a digest by which two programs find out that theirs differ."""

from collections.abc import Mapping
from hashlib import blake2b


class AddressBook:
    """The URLs of nodes, by id."""

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}
        self._digest = 0

    def set(self, node: str, url: str | None) -> None:
        """Takes the address of a node. None: it has no address any more."""
        for each in (self._urls.pop(node, None), url):
            if each is not None:
                self._digest ^= _digest_of(node, each)
        if url is not None:
            self._urls[node] = url

    def replace(self, urls: Mapping[str, str]) -> None:
        """Takes the place of all that was known."""
        for node in (*self._urls, *urls):
            self.set(node, urls.get(node))

    def get(self, node: str, default: str | None = None) -> str | None:
        return self._urls.get(node, default)

    @property
    def urls(self) -> Mapping[str, str]:
        """Returns a copy."""
        return dict(self._urls)

    @property
    def digest(self) -> str:
        """Returns 16 hexadecimal digits, the same for the same addresses, however they came."""
        return f"{self._digest:016x}"


def _digest_of(node: str, url: str) -> int:
    text = f"{node}\0{url}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
