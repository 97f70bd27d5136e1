"""The exceptions that mean "the input is wrong" or "this cannot go on", each with a sentence for a person to read."""

from collections.abc import Iterable
from difflib import get_close_matches


class SkillstackError(Exception):
    """Bad input. The command line prints its message and exits with status 2; nothing else is caught there.

    It is not a ValueError, which argument parsers catch and dress up in words of their own.
    """


class DivergedError(SkillstackError):
    """A loss or a gradient is not finite any more."""


def unknown(kind: str, given: str, known: Iterable[str]) -> SkillstackError:
    """An error that lists what is known and names what was probably meant."""
    known = tuple(known)
    near = get_close_matches(given, known, n=1, cutoff=0.5)
    guess = f' Did you mean "{near[0]}"?' if near else ""
    return SkillstackError(f'Unknown {kind} "{given}".{guess} Known: {", ".join(known)}.')
