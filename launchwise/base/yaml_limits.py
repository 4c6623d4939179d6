"""Limits of YAML files, kept while the file is scanned, before anything is built from it.

Ten lines of aliases may stand for 10^9 values, and PyYAML's composer in C has no limit of depth:
it overflows the stack of the process. So a scan without recursion goes first.
"""

from __future__ import annotations

from typing import Any

import yaml

MOST_BYTES = 4 << 20
"""Longest YAML file, bytes."""

MOST_VALUES = 200_000
"""Most keys and values of a YAML file, with those that aliases stand for."""

MOST_LEVELS = 50
"""Most mappings and lists inside each other."""

LARGEST = 2**63 - 1
"""Largest magnitude of an integer."""


class BeyondLimitError(yaml.MarkedYAMLError):
    """Well-formed YAML that is refused here."""


def refused(message: str, event: Any) -> BeyondLimitError:
    """Error at the line where a node or an event of PyYAML begins."""
    return BeyondLimitError(problem=message, problem_mark=event.start_mark)


def check_limits(text: str, loader: Any) -> None:
    """Insist that a YAML text stays within the limits, and names no tag.

    Raises
    ------
    yaml.MarkedYAMLError
        With the line where it is no YAML, or leaves a limit.
    """
    # Values below each open collection; the first entry is the file.
    counts, anchors, known, levels = [0], [""], dict[str, int](), 0
    for event in yaml.parse(text, Loader=loader):
        match event:
            case yaml.CollectionStartEvent():
                _insist_on_no_tag(event)
                counts.append(1)
                anchors.append(event.anchor or "")
                levels = max(levels, len(counts) - 1)
                if event.anchor:
                    # Open: an alias to it would be endless.
                    known[event.anchor] = 0
            case yaml.CollectionEndEvent():
                count, anchor = counts.pop(), anchors.pop()
                if anchor:
                    known[anchor] = count
                counts[-1] += count
            case yaml.ScalarEvent():
                _insist_on_no_tag(event)
                counts[-1] += 1
                if event.anchor:
                    known[event.anchor] = 1
            case yaml.AliasEvent() if event.anchor in known:
                if known[event.anchor] == 0:
                    raise refused(f"*{event.anchor} stands inside itself", event)
                counts[-1] += known[event.anchor]
        if levels > MOST_LEVELS:
            raise refused(f"is nested more than {MOST_LEVELS} levels deep", event)
        if counts[-1] > MOST_VALUES:
            raise refused(f"stands for more than {MOST_VALUES:,} values, aliases included", event)


def _insist_on_no_tag(event: Any) -> None:
    if event.tag is not None:
        raise refused(f"{event.tag} is a tag: leave it out", event)
