"""The data files of a region: which it reads, and for whom; which are not obsolete."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from dataplane.region.files.file_reader import FileReader, FileSource
from dataplane.region.format.names import Numbered, Opening, data_name
from dataplane.region.manifests.manifest import FileEntry

Readers = tuple[FileReader, ...]


class OpenFiles:
    """The files of a region that readers may use. Not safe for threads: the region's short lock
    guards each call."""

    def __init__(
        self, source: FileSource, opening: Opening, written: int, entries: Iterable[FileEntry]
    ) -> None:
        self._source = source
        self._opening = opening
        self._written = written
        self._readers: dict[int, Readers] = {}
        """Readers by family; of each family the newest first."""
        self._users: Counter[str] = Counter()
        self._growing: set[str] = set()
        self._let_go: set[str] = set()
        self.follow(entries)

    def follow(self, entries: Iterable[FileEntry]) -> None:
        """Readers of files that stay are kept: they have read their footers."""
        by_entry = {reader.entry: reader for reader in self._all()}
        by_family: dict[int, list[FileReader]] = {}
        for entry in sorted(entries, key=lambda entry: entry.max_version, reverse=True):
            reader = by_entry.get(entry) or FileReader(self._source, entry)
            by_family.setdefault(entry.family, []).append(reader)
        self._readers = {family: tuple(readers) for family, readers in by_family.items()}
        stay = {reader.entry for reader in self._all()}
        self._source.cache.forget_large(
            [reader.path for entry, reader in by_entry.items() if entry not in stay]
        )

    def close(self) -> None:
        """Closes all files: nobody reads here any more."""
        self._source.cache.forget_large([reader.path for reader in self._all()])

    def take(self, family: int) -> Readers:
        """The family's files as they are now; to be given back."""
        readers = self._readers.get(family, ())
        self._users.update(reader.path for reader in readers)
        return readers

    def take_all(self) -> Readers:
        """All files as they are now; to be given back."""
        return tuple(reader for family in self._readers for reader in self.take(family))

    def resident(self, family: int) -> Readers:
        """The same as far as they are in memory; nothing is to be given back."""
        return tuple(reader.resident for reader in self._readers.get(family, ()))

    def give_back(self, readers: Iterable[FileReader]) -> None:
        self._users.subtract(reader.path for reader in readers)
        self._users += Counter()  # forgets those without users

    def begin(self) -> Numbered:
        """The name of the next file, which is not obsolete while it is written."""
        self._written += 1
        name = Numbered(*self._opening, self._written)
        self._growing.add(data_name(name))
        return name

    def end(self, name: Numbered) -> None:
        self._growing.discard(data_name(name))

    def let_go(self, entries: Iterable[FileEntry]) -> None:
        """Own ones that no manifest names any more: they go when nobody reads them."""
        self._let_go.update(entry.name for entry in entries if entry.root is None)

    def unread(self) -> list[str]:
        """Names of files that were let go and that nobody reads any more: they get no new
        readers."""
        read = {reader.entry.name for reader in self._all()} | self._names_in_use()
        return sorted(self._let_go - read)

    def removed(self, names: Collection[str]) -> None:
        self._let_go.difference_update(names)

    @property
    def unnamed(self) -> frozenset[str]:
        """Files that no manifest names and that are still in use."""
        return frozenset(self._growing | self._let_go)

    def _all(self) -> Iterator[FileReader]:
        return chain.from_iterable(self._readers.values())

    def _names_in_use(self) -> set[str]:
        own = self._source.own_root + "/"
        return {path.removeprefix(own) for path in self._users}
