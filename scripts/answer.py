"""Write the fastest configuration of each problem of one sweep, as JSON and as a page."""

from pathlib import Path

from launchwise.base.scripting import run


def main(folder: Path, gpu: str, sweep: Path, profile: Path, facts: Path, page: Path) -> None:
    """Read a sweep of ``gpu`` and its profile; write the answers."""
    from launchwise.report.sweep_page import write_answers

    write_answers(folder, gpu, sweep, profile, facts, page)


if __name__ == "__main__":
    run(main)
