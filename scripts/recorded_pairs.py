"""Check pairs, of configurations or of libraries, and copy them: from data/recorded/, or there."""

from pathlib import Path
from typing import Any

from launchwise.base.forking import run


def main(
    folder: Path,
    gpu: str,
    kind: str,
    own_usual: list[dict[str, Any]] | None,
    clock_tolerance: float | None,
    pairs: Path,
    output: Path,
    same_rounds: Path | None = None,
) -> None:
    """Check ``pairs`` and copy them, beside the usual choice of today.

    Parameters
    ----------
    kind
        ``pairs`` or ``peers``.
    own_usual
        The study's own rules for the usual choice; None for those of its workload.
    clock_tolerance
        None for the default of the settings.
    same_rounds
        For libraries, the recorded pairs of the configurations that ran in the same rounds; None
        without any.

    Raises
    ------
    UserError
        When they do not fit their schema or speak of another GPU.
    """
    from launchwise.base.errors import UserError
    from launchwise.experiment.confirmation import Confirmation
    from launchwise.measuring.pairs.present_usual import beside_usual, peers_beside_usual
    from launchwise.tables.files import read_facts, read_table, write_table
    from launchwise.tables.pairs import pairs_schema
    from launchwise.tables.peers import peers_schema
    from launchwise.workloads.spec import load_spec
    from launchwise.workloads.usual import Usual

    schemas = {"pairs": pairs_schema, "peers": peers_schema}
    spec = load_spec(folder)
    schema = schemas[kind](spec)
    table = read_table(pairs, schema)
    if names := sorted(set(table["gpu"]) - {gpu}):
        raise UserError(pairs, "gpu", f"is {names[0]!r}, not {gpu!r}")
    rules = [Usual.model_validate(each) for each in own_usual] if own_usual else spec.usual
    tolerance = clock_tolerance or Confirmation().clock_tolerance
    if kind == "pairs":
        table = beside_usual(table, spec, rules, tolerance)
    elif same_rounds is not None:
        configurations = read_table(same_rounds, schemas["pairs"](spec))
        table = peers_beside_usual(table, configurations, spec, rules, tolerance)
    write_table(output, table, schema, read_facts(pairs))


if __name__ == "__main__":
    run(main, "tables")
