"""Reads a file of any format that launchwise knows, by its content."""

from __future__ import annotations

from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.importing.csv_mapping import Mapped, read_csv
from launchwise.importing.files import parse_json, read_text
from launchwise.importing.kernel_tuner import is_cache, sweep_of_cache
from launchwise.importing.ktt import is_ktt, sweep_of_ktt
from launchwise.importing.sweep import ForeignSweep
from launchwise.importing.t1_t4 import Space, is_t1, is_t4, sweep_of_t4

KNOWN = "a Kernel Tuner cache, T4, KTT's JSON, or CSV with a mapping of its columns"


def read_sweeps(
    path: str | Path, space: Space | None = None, columns: Mapped | None = None
) -> list[ForeignSweep]:
    """Sweeps in a file.

    Parameters
    ----------
    space
        T1 of the kernel.
    columns
        Mapping of the columns, for CSV.

    Raises
    ------
    UserError
        When the file cannot be read, or is of no known format.
    """
    name = Path(path).name.lower().removesuffix(".gz")
    text = read_text(path)
    is_json = text.lstrip().startswith(("{", "["))
    if name.endswith((".csv", ".tsv")) or (columns is not None and not is_json):
        if columns is None:
            raise UserError(
                path, "", "is CSV: name a file that says what its columns hold (--columns)"
            )
        return read_csv(path, columns)
    content, cut = parse_json(text, path)
    if is_cache(content):
        found = sweep_of_cache(content, path, cut)
        if space and set(space.tunables) != set(found.tunables):
            strange = sorted(set(space.tunables) ^ set(found.tunables))
            message = f"and the space (T1) have different parameters: {', '.join(strange)}"
            raise UserError(path, "", message)
        return [found]
    if is_ktt(content):
        return [sweep_of_ktt(content, path, cut)]
    if is_t4(content):
        return [sweep_of_t4(content, path, space, cut)]
    if is_t1(content):
        raise UserError(path, "", "is T1, which holds a space and no times: name it as the space")
    raise UserError(path, "", f"is of no known format (allowed: {KNOWN})")
