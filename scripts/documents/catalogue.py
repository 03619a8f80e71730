"""A catalogue of cases: data, and what its numbers are."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Cases that somebody else has stated, in our words."""

    source: str
    """Name of the source in markers."""
    page: str
    header: str
    """Header of the page, with fields {shown}, {total}, {part}, {missing}, {other}."""
    sections: Mapping[str, str]
    """Title -> its cases, one a line: number, and what it is about."""
    why_not: Mapping[int, str]
    """Case -> why it cannot apply here, whatever is built."""
    not_built: Mapping[int, str] = field(default_factory=dict)
    """Case -> what it is about, and is not there yet."""
    in_part: Mapping[int, str] = field(default_factory=dict)
    """Case -> what its tests leave out."""

    def cases(self) -> Mapping[int, str]:
        """Every case by its number."""
        lines = (line for text in self.sections.values() for line in text.strip().splitlines())
        return {int(number): about for number, _, about in (line.partition(" ") for line in lines)}
