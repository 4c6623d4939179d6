"""Files of a table of answers, one per format."""

from __future__ import annotations

from pathlib import Path

from launchwise.base.names import inside
from launchwise.base.storage import new_folder, write_json, write_text
from launchwise.exporting.cpp import cpp_header
from launchwise.exporting.others import cmake_config, t4_contents, wisdom_text
from launchwise.exporting.python import python_module
from launchwise.exporting.table import AnswerTable

FORMATS = {
    "hpp": "{study}.hpp",
    "json": "{study}.json",
    "python": "{study}.py",
    "wisdom": "{study}.wisdom",
    "t4": "t4",
    "cmake": "cmake",
}
"""Format to its file, or its folder: of T4 with a file per device, of CMake a package."""


def write_answers(folder: Path, table: AnswerTable) -> None:
    """Write every format into ``folder``, which is made anew."""
    new_folder(folder)
    paths = {name: folder / file.format(study=table.study) for name, file in FORMATS.items()}
    header = cpp_header(table)
    write_text(paths["hpp"], header)
    write_text(paths["python"], python_module(table))
    write_text(paths["wisdom"], wisdom_text(table))
    write_json(paths["json"], table.plain())
    paths["cmake"].mkdir()
    write_text(paths["cmake"] / f"{table.study}Config.cmake", cmake_config(table))
    write_text(paths["cmake"] / paths["hpp"].name, header)
    paths["t4"].mkdir()
    for device, content in t4_contents(table).items():
        file = inside(paths["t4"], f"{device}.json", table.study, "devices")
        write_json(file, content)
