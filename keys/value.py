"""The base of everything stored: explicit names, unknown fields refused, a format number."""

from typing import ClassVar, TypeVar

from pydantic import ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from keys.packed import NewerPacking
from metasrv_base.described import Described
from metasrv_base.errors import Corrupt

M = TypeVar("M", bound="StoredModel")
P = TypeVar("P", bound="StoredPart")
NEWER = "newer_format"  # type of the validation error


class StoredPart(Described):
    """A piece of a stored value; it has no format number of its own."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class StoredModel(StoredPart):
    """A value in the store. `format` rises when an older server could no longer read it."""

    newest_format: ClassVar[int] = 1

    format: int = Field(default=1, ge=1)
    """Number of the format this value was written in."""

    @field_validator("format")
    @classmethod
    def _is_known(cls, number: int) -> int:
        if number > cls.newest_format:
            facts = {"format": number, "known": cls.newest_format}
            raise PydanticCustomError(NEWER, "format {format}, known up to {known}", facts)
        return number

    def pack(self) -> bytes:
        """The value as it is stored: JSON, where the model has no shorter form."""
        return self.model_dump_json().encode()

    @classmethod
    def unpack(cls, raw: bytes) -> bytes:
        """The JSON of a stored value. Raises NewerPacking, and ValueError for a short form that
        `pack` does not make."""
        return raw


class NewerFormat(Corrupt):
    """Written by a newer server: readable by nobody here, and never rewritten (S14)."""


def is_none(value: object) -> bool:
    """For `exclude_if` of a field that older servers do not know."""
    return value is None


def encode(value: StoredModel) -> bytes:
    return value.pack()


def decode(value_type: type[M], raw: bytes, *, key: str) -> M:
    """Raises NewerFormat for a higher format, Corrupt for anything we would not have written.

    Strict: a number in quotes is not a number. A higher format counts wherever it stands, also in
    a value inside the value.
    """
    return decode_json(value_type, json_of(value_type, raw, key=key), key=key)


def json_of(value_type: type[StoredModel], raw: bytes, *, key: str) -> bytes:
    """Returns the JSON of a stored value, which is not validated. Raises NewerFormat for a newer
    packing, and Corrupt."""
    try:
        return value_type.unpack(raw)
    except NewerPacking as error:
        raise NewerFormat(key=key, format=error.number, known=error.known) from error
    except ValueError as error:
        raise Corrupt(key=key, reason=str(error), value=raw[:200]) from error


def decode_json(part_type: type[P], text: bytes, *, key: str) -> P:
    """Decodes a value, or a piece of one, from its JSON. Raises as `decode`."""
    try:
        return part_type.model_validate_json(text, strict=True)
    except ValidationError as error:
        newer = [detail["ctx"] for detail in error.errors() if detail["type"] == NEWER]
        if newer:
            raise NewerFormat(key=key, **newer[0]) from error
        raise Corrupt(key=key, errors=error.error_count(), value=text[:200]) from error
