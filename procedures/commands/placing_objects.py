"""Changes of what tables are placed by, the same for placements and for tablespaces: an object has
a name that may change, an id that never does, and a default that always exists under its name."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from keys.commit.entry_writes import MetadataView
from keys.key import Key, Range
from keys.model.log import Entry
from keys.model.placing.placements import DEFAULT_PLACEMENT, PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from metasrv_base.errors import Conflict, NotFound
from procedures.commands.command import CatalogCommand
from procedures.steps.existing import must_be_free

Info = TypeVar("Info", PlacementInfo, TablespaceInfo)

IS_DEFAULT = "is the default, which always exists under its name"


class ObjectOfPlacing(ABC, Generic[Info]):
    """The object that a command is about, by its name and the id that the name resolved to."""

    __slots__ = ()
    word: ClassVar[str]
    name: str

    @abstractmethod
    def key(self, name: str) -> Key[Info]: ...

    @abstractmethod
    def full_name(self, name: str) -> str: ...

    @abstractmethod
    def is_same(self, info: Info) -> bool:
        """Whether *info*, which bears the name, has the id too."""

    def standing(self, view: MetadataView) -> Info:
        """Raises NotFound; Conflict where the name means another object by now."""
        info: Info | None = view.get(self.key(self.name))
        if info is None:
            raise NotFound(what=self.word, name=self.full_name(self.name))
        if not self.is_same(info):
            raise Conflict("schema-conflict", name=self.full_name(self.name))
        return info

    def must_not_be_default(self) -> None:
        must_not_be_default(self.word, self.full_name(self.name))


class ChangeCommand(ObjectOfPlacing[Info], CatalogCommand):
    """Looks at the object alone."""

    __slots__ = ()

    def keys(self) -> tuple[Key[Any], ...]:
        return (self.key(self.name),)


class RenameCommand(ObjectOfPlacing[Info], CatalogCommand):
    __slots__ = ()
    new_name: str

    @abstractmethod
    def renamed(self, info: Info) -> Entry: ...

    def keys(self) -> tuple[Key[Any], ...]:
        return self.key(self.name), self.key(self.new_name)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        info = self.standing(view)
        self.must_not_be_default()
        bearer = view.get(self.key(self.new_name))
        must_be_free(self.word, self.full_name(self.new_name), bearer)
        new = info.model_copy(update={"name": self.new_name, "version": info.version + 1})
        return (self.renamed(new),)


class DropCommand(ChangeCommand[Info]):
    """No living table uses it: that is a compare."""

    __slots__ = ()

    @abstractmethod
    def users(self) -> Range:
        """The range of keys, one for each table that uses it."""

    @abstractmethod
    def dropped(self) -> Entry: ...

    def empty(self) -> tuple[Range, ...]:
        return (self.users(),)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        self.standing(view)
        self.must_not_be_default()
        return (self.dropped(),)


def must_not_be_default(what: str, name: str) -> None:
    """Raises Conflict for the default placement, and the default tablespace of a catalog."""
    if name.rpartition(".")[2] == DEFAULT_PLACEMENT:
        raise Conflict("object-in-use", name=f"{what} {name}", what=IS_DEFAULT)
