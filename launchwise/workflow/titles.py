"""Settings and specs without what is there for readers alone: titles, descriptions, questions.

A stage that prints none of them must not rerun when one of them changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.base.typed import read_yaml
from launchwise.experiment.study import Study

_SPEC_TEXTS = ("title", "description")
_PART_TEXTS = {
    "problem": ("description",),
    "tunables": ("description",),
    "arguments": ("description",),
    "variants": ("title",),
}
"""Section of a spec to the texts of each of its entries."""


def untitled_study(study: Study) -> dict[str, Any]:
    """A study as plain values, with empty titles and an empty question; still a valid study."""
    plain = study.model_dump(mode="json")
    parts = [plain[key].values() for key in ("splits", "own_models", "designs")]
    titled = [plain, *(each for entries in parts for each in entries)]
    for each in titled:
        each["title"] = ""
    plain["question"] = ""
    return plain


def spec_digest(path: Path) -> str:
    """Digest of what a ``spec.yaml`` says, without titles, descriptions, comments and layout.

    The order of its keys counts: candidates are listed in it.

    Raises
    ------
    UserError
        When the file is no YAML.
    """
    content = read_yaml(path)
    if isinstance(content, Mapping):
        content = {key: value for key, value in content.items() if key not in _SPEC_TEXTS}
        for part, texts in _PART_TEXTS.items():
            if isinstance(content.get(part), Mapping):
                content[part] = {
                    name: _without(entry, texts) for name, entry in content[part].items()
                }
    text = json.dumps(content, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without(entry: Any, texts: tuple[str, ...]) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    return {key: value for key, value in entry.items() if key not in texts}
