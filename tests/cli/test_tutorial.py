"""The commands of the tutorial of an own kernel, in an empty folder, as they are printed."""

import json
import re
import shlex
import shutil

import pytest
from fake_cluster import CARD, of_cards
from forks import forked, run_launchwise
from samples import ROOT

PAGE = ROOT / "docs" / "tutorial" / "own_kernel.md"
EXAMPLE = ROOT / "docs" / "tutorial" / "example" / "smooth"
MOST_EDITS = 10
"""Lines of a spec that a user may have to change."""

SMALLER = {"4096": "24", "2048": "20", "1024": "16"}
"""Sizes that the made-up card can compute: its kernels run on the CPU."""


@pytest.fixture
def here(tmp_path, kernel_cache):
    """An empty folder on a machine with one made-up card."""
    (tmp_path / "cards.json").write_text(json.dumps({"h200": [CARD]}))
    (tmp_path / "cache").symlink_to(kernel_cache)
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def run(line, here):
    """What a line of the tutorial prints."""
    program, *words = shlex.split(line)
    assert program == "launchwise"
    environment = of_cards(here.parent / "cards.json", here.parent / "cache")
    done = forked(run_launchwise, words, here, environment, seconds=200)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr[-3000:]}"
    return done.stdout


def commands():
    """Lines of the page's shell blocks, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def narrow(here):
    """Fewer configurations than on the page: each is compiled for the CPU."""
    path = here / "smooth" / "spec.yaml"
    text = path.read_text().replace("[16, 32, 64, 128]", "[16, 32]")
    path.write_text(text.replace("[1, 2, 4, 8, 16, 32]", "[8]"))


def of_smaller(line):
    """The line with sizes that the made-up card can compute."""
    for size, smaller in SMALLER.items():
        line = line.replace(size, smaller)
    return line


def test_from_an_empty_folder_to_the_answer(here):
    new, check, check_cpu, tune, tune_three = commands()
    shutil.copy(EXAMPLE / "smooth.cu", here)
    run(new, here)
    made = (here / "smooth" / "spec.yaml").read_text()
    # The answers to the questions, and the title.
    wanted = (EXAMPLE / "spec.yaml").read_text()
    lines = [line.partition("  #")[0] for line in made.splitlines() if line[:1] != "#"]
    kept = [line.partition("  #")[0] for line in wanted.splitlines()]
    assert made.count("# ?") == 5
    assert 0 < len(set(kept) - set(lines)) <= MOST_EDITS
    (here / "smooth" / "spec.yaml").write_text(wanted)
    shutil.copy(EXAMPLE / "reference.py", here / "smooth")

    assert "builds compile for" in run(check, here)
    assert "ok       cpu: smooth block_size_x=32" in run(check_cpu, here)

    narrow(here)
    said = run(of_smaller(tune), here)
    assert "  fastest  " in said
    assert "  macros   -Dblock_size_x=" in said
    assert "page: tuned/smooth/results/answers/local/smooth.html" in said
    # What a run of three sizes makes is tested in test_tune.py.
    run(f"{of_smaller(tune_three)} --dry-run", here)


def test_what_pages_include_is_there_and_written_as_the_site_reads_it():
    docs = ROOT / "docs"
    found = 0
    for page in docs.rglob("*.md"):
        for line in page.read_text().splitlines():
            # A formatter of code once wrote it with spaces, and the page showed the line itself.
            if re.match(r"\s*-+\s*8\s*<", line):
                named = re.fullmatch(r'--8<-- "(.+)"', line)
                assert named, f"{page}: {line}"
                assert (docs / named[1]).is_file(), f"{page}: {line}"
                found += 1
    assert found > 8
