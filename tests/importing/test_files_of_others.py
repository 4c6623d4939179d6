"""What an import says of files that others wrote: cases of ``data/files_of_others.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import foreign
import pytest
import yaml

from launchwise.base.errors import UserError
from launchwise.importing.command import import_sweeps, told

CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("data").joinpath("files_of_others.yaml").read_text()
)


@pytest.mark.parametrize("case", CASES)
def test_what_is_said_of_a_file(tmp_path: Path, case: str) -> None:
    given = CASES[case]
    file = foreign.write(tmp_path / given["file"], given["text"])
    options: dict[str, Any] = {}
    if "columns" in given:
        options["columns"] = foreign.write(tmp_path / "columns.yaml", given["columns"])
    else:
        options["problem"] = ["n=1"]
    if "refused" in given:
        with pytest.raises(UserError) as caught:
            import_sweeps([file], "w", tmp_path / "k", tmp_path / "r", **options)
        assert given["refused"] in str(caught.value)
        return
    lines = told(import_sweeps([file], "w", tmp_path / "k", tmp_path / "r", **options))
    fastest = [line for line in lines if line.startswith("fastest on ")]
    assert given["fastest"] in fastest[0]
    assert any(given["note"] in line for line in lines if line.startswith("note: "))
