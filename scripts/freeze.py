"""Draw the problems of a blind test and write the answers before they are measured."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import log, run


def main(
    study: str,
    entry: dict[str, Any],
    folder: Path,
    question: dict[str, Any],
    gpu: str,
    final: Path,
    lookup: Path,
    sweeps: list[Path],
    before: Path | None,
    gpus: list[str],
    profiles: list[Path],
    listed: list[dict[str, Any]],
    seed: int,
    frozen: Path,
    asked: Path,
) -> None:
    """Write the answers, and the problems that are to be measured.

    ``final``, ``lookup``: facts of the study's product, and its answers.
    ``sweeps``, ``gpus``, ``profiles``: what it learnt from; with a held-out GPU, the profile of
        this too.
    ``before``: other rows of the GPU, whose sizes are left out; so are those of ``listed``,
        problems that its sweep measures.
    """
    import pandas as pd

    from launchwise.base.places import commit, now
    from launchwise.base.storage import write_json
    from launchwise.experiment.load import load_of
    from launchwise.experiment.study import Study
    from launchwise.exporting.table import answer_of, read_answer_table
    from launchwise.learning.answers import Answer
    from launchwise.learning.blind import LISTED, blocks_of, draw_problems, freeze, problem_of
    from launchwise.learning.features import read_domain
    from launchwise.learning.final import read_final
    from launchwise.learning.splits import Case
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema

    wanted = Study.model_validate(entry)
    assert wanted.blind is not None
    domain = read_domain(folder, gpus, profiles, question)
    spec = domain.spec
    schema = measurement_schema(spec)
    product = read_final(final.parent, domain)
    tables = [
        read_table(path, schema, spec.problem_columns)
        for path in [*sweeps, *([before] if before else [])]
    ]
    # The product also knows what blind tests of other GPUs measured.
    tables.append(product.fastest)
    tables.append(pd.DataFrame(listed, columns=spec.problem_columns))
    load = load_of(wanted.load, spec)
    problems = draw_problems(wanted.blind, domain, gpu, tables, f"{study} {seed}", load)
    table = read_answer_table(lookup, domain)

    def answered(case: Case) -> Answer:
        return answer_of(table, product, case, LISTED, None)

    found = freeze(frozen, study, gpu, product, problems, seed, commit(), now(), answered)
    drawn = [problem_of(each, spec) for each in found.answers]
    write_json(asked, {"problems": drawn, "blocks": blocks_of(found, wanted, spec)})
    log.info("%d problems, digest %s", len(drawn), found.digest)


if __name__ == "__main__":
    run(main)
