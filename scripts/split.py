"""Split the cases (GPU, problem) of a study into training and test cases."""

from pathlib import Path
from typing import Any

from launchwise.base.forking import run


def main(
    study: str,
    splits: dict[str, Any],
    folder: Path,
    gpus: list[str],
    sweeps: list[Path],
    profiles: list[Path],
    blamed: dict[str, list[str]],
    leave_out: dict[str, Any],
    output: Path,
) -> None:
    """Write every split and fold of a study.

    Parameters
    ----------
    gpus, sweeps, profiles
        Names, and files of each.
    blamed
        Split to the file that holds it and its key there.
    leave_out
        GPU to problems that take no part on it.
    """
    from pydantic import TypeAdapter

    from launchwise.base.storage import write_json
    from launchwise.experiment.study import Split
    from launchwise.learning.reading import read_domain, read_tables
    from launchwise.learning.splits import make_splits
    from launchwise.tables.measurements import measurement_schema

    domain = read_domain(folder, gpus, profiles, {})
    tables = read_tables(gpus, sweeps, measurement_schema(domain.spec))
    asked = TypeAdapter(dict[str, Split]).validate_python(splits)
    known = domain.spec, tables, domain.profiles
    write_json(output, make_splits(study, asked, *known, blamed, leave_out))


if __name__ == "__main__":
    run(main, "tables")
