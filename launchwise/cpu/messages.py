"""Messages of g++ as one line for the user."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ERROR = re.compile(r"^(.*?:\d+):\d+: (?:fatal )?error: (.*)$", re.MULTILINE)
_REQUIRED = re.compile(r"^(.*?:\d+):\d+:\s+required from here", re.MULTILINE)
_UNDEFINED = re.compile(r"undefined reference to [`'](.*?)'")
_UNDECLARED = re.compile(
    r"'(?:\w+::)*(\w+)' (?:was not declared|does not name|has not been declared|is not a member)"
    r"|'(?:\w+::)*(\w+)' is not a|no matching function for call to '(?:\w+::)*(\w+)"
)

MOST_FURTHER = 2  # Errors that are told beside the first one


@dataclass(frozen=True)
class Error:
    """An error of the compiler."""

    place: str  # file and line
    message: str

    @property
    def undeclared(self) -> str:
        """The name that is missing, '' if the error is another one."""
        found = _UNDECLARED.search(self.message)
        return next((name for name in found.groups() if name), "") if found else ""


def first_error(said: str, headers: str, source: str) -> Error:
    """The first error in the output of g++, if possible one in a file of the user's.

    ``said``: all that g++ says.
    ``headers``: folder of the CPU device's own headers.
    ``source``: the build's source, for errors without a place.
    """
    foreign = (headers, "/usr/", "<")
    errors = [Error(*error) for error in _ERROR.findall(said)]
    for error in errors:
        if not error.place.startswith(foreign):
            return error
    # Of a template of a library, the line of the user that asks for it.
    asking = [place for place in _REQUIRED.findall(said) if not place.startswith(foreign)]
    if errors:
        return Error(asking[0] if asking else errors[0].place, errors[0].message)
    if undefined := _UNDEFINED.search(said):
        return Error(source, f"{undefined[1]} is declared, but defined nowhere")
    return Error(source, f"g++: {' '.join(said.split())[-500:]}")


def further_errors(said: str, headers: str, first: Error) -> list[Error]:
    """Errors after the first one, in other lines of the user's files: at most two."""
    foreign = (headers, "/usr/", "<")
    found = {first.place: first}
    for place, message in _ERROR.findall(said):
        # What is not declared is told once.
        known = any(one.message == message for one in found.values())
        if not place.startswith(foreign) and not known and len(found) <= MOST_FURTHER:
            found.setdefault(place, Error(place, message))
    return list(found.values())[1:]


def plain(text: str) -> str:
    """The text with a question mark for each byte that is not UTF-8."""
    return text.encode(errors="surrogateescape").decode(errors="replace").replace("\ufffd", "?")
