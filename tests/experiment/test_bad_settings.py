"""Bad overlays: one line with the file, the key and what is allowed."""

from pathlib import Path

import pytest
import yaml
from overlays import STUDY, S, line_of, nested

CASES = yaml.safe_load((Path(__file__).parent / "data" / "bad_settings.yaml").read_text())


@pytest.mark.parametrize("said", CASES)
def test_a_bad_overlay_is_one_line_with_its_file_key_and_what_is_allowed(home, said):
    start, _, part = said.replace("STUDY", STUDY).partition(" ... ")
    overlay = {}
    for path, value in CASES[said].items():
        overlay |= nested(path.replace("STUDY", S), value)
    line = line_of({"search": {"folds": 2}}, overlay, {"search": {"trials": 1}})
    assert line.startswith(f"overlay1.yaml: {start}")
    assert part in line
