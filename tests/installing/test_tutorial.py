"""The commands of the tutorial of an own kernel, in an empty folder, by the wheel alone."""

import re
import shlex
import shutil

from samples import ROOT

PAGE = ROOT / "docs" / "tutorial" / "own_kernel.md"
EXAMPLE = ROOT / "docs" / "tutorial" / "example" / "smooth"
MOST_EDITS = 10
"""Lines of a spec that a user may have to change."""

SMALLER = {"4096": "24", "2048": "20", "1024": "16"}
"""Sizes that the made-up card can compute: its kernels run on the CPU."""

FEWER = {"[16, 32, 64, 128]": "[16, 32]", "[1, 2, 4, 8, 16, 32]": "[8]"}
"""Values of which each is compiled for the CPU."""


def smaller(text, changes):
    """A text with smaller passages in place of some."""
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def packaged(installed):
    """Files of the environment, which may belong to an administrator."""
    return sorted(path for path in installed.packages.rglob("*") if "__pycache__" not in str(path))


def test_from_an_empty_folder_to_the_answer(installed, tmp_path):
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    new, check, check_cpu, tune, tune_three = "".join(blocks).splitlines()
    before = packaged(installed)

    def run(line):
        words = shlex.split(smaller(line, SMALLER))
        done = installed.run(*words, folder=tmp_path, gpu=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr[-3000:]}"
        return done.stdout

    shutil.copy(EXAMPLE / "smooth.cu", tmp_path)
    run(new)
    made, wanted = (path / "spec.yaml" for path in (tmp_path / "smooth", EXAMPLE))
    # The answers to the questions, and the title.
    lines = {line.partition("  #")[0] for line in made.read_text().splitlines()}
    assert made.read_text().count("# ?") == 3
    kept = {line.partition("  #")[0] for line in wanted.read_text().splitlines()}
    assert 0 < len(kept - lines) <= MOST_EDITS
    made.write_text(smaller(wanted.read_text(), FEWER))
    shutil.copy(EXAMPLE / "reference.py", tmp_path / "smooth")

    assert "builds compile for" in run(check)
    assert "ok       cpu: smooth block_size_x=32" in run(check_cpu)
    said = run(tune)
    assert "  fastest  " in said
    assert "  macros   -Dblock_size_x=" in said
    assert "page: tuned/smooth/results/answers/local/smooth.html" in said
    # What a run of three sizes makes is tested in tests/cli/test_tune.py.
    run(f"{tune_three} --dry-run")
    assert packaged(installed) == before
