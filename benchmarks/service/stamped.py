"""Many tables that differ in their numbers alone: what is written of one, stamped for each.

The mould is what the real code writes at the end of a create, made once for numbers that stand
nowhere else; a stamp puts a table's own in their place. Bytes for bytes it is what the committer
would have written (tests/keys/commit/test_batch_stamped.py), at a twentieth of the processor's
time.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from keys.store.kv import Put

Numbers = Mapping[bytes, bytes]
"""Text in the mould -> the text that replaces it."""


@dataclass(frozen=True, slots=True)
class Mould:
    """Texts with places for numbers."""

    puts: tuple[tuple[bytes, bytes], ...]
    """Keys and values, as bytes to be formatted."""

    @classmethod
    def of(cls, puts: Iterator[Put], names: Mapping[bytes, bytes]) -> "Mould":
        """*names*: each number in the texts, and the name of its place."""
        longest_first = sorted(names, key=len, reverse=True)
        found = re.compile(b"|".join(map(re.escape, longest_first)))

        def open_(text: bytes) -> bytes:
            return found.sub(lambda one: b"%%(%b)b" % names[one[0]], text.replace(b"%", b"%%"))

        return cls(tuple((open_(put.key), open_(put.value)) for put in puts))

    def stamped(self, numbers: Numbers) -> Iterator[Put]:
        """*numbers*: by the name of their place."""
        for key, value in self.puts:
            yield Put(key % numbers, value % numbers)
