"""Documented commands of Snakemake, Apptainer and conda parse, and name files that are there.

Snakemake's own parser reads its lines. Apptainer and conda are not installed with the tests: what
they are called with is held against the forms that they have.
"""

import re
import shlex
from pathlib import Path

import pytest
from samples import ROOT
from snakemake.cli import get_argument_parser

from docs.generator.write_figures import documents
from launchwise.cli.app import app

COMMANDS = ("snakemake", "apptainer", "conda", "python -m snakemake")
OTHERS = ("container.def", "environment.yaml", "profiles/slurm/config.yaml")
"""Files whose comments hold commands."""

PLACEHOLDERS = re.compile(r"\.\.\.|…|<\w+>|(?<![-\w])[A-Z]+\b")


def commands():
    """Place and words of each documented command that starts with one of :data:`COMMANDS`."""
    for name in (*documents(), *OTHERS):
        if not (ROOT / name).is_file():
            # Tests are also collected in a copy of the project that lacks some files.
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        fenced = re.findall(r"^```(?:sh|bash)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        lines = [line for block in fenced for line in block.replace("\\\n", " ").splitlines()]
        inline = re.findall(
            r"`([^`\n]+(?:\n[^`\n]+)?)`", re.sub(r"```.*?```", "", text, flags=re.S)
        )
        if name in OTHERS:
            lines += re.findall(r"^#.*?((?:snakemake|apptainer|conda) [-\w][^:#\n]*)", text, re.M)
        for line in (*lines, *(" ".join(each.split()) for each in inline)):
            for part in re.split(r"&&|;", line):
                part = part.strip().removeprefix("$ ")
                if part.startswith(tuple(f"{each} " for each in COMMANDS)):
                    words = shlex.split(part.removeprefix("python -m "), comments=True)
                    yield name, words
                elif part.startswith("--") and re.match(
                    r"--(sdm|apptainer|workflow-profile)", part
                ):
                    yield name, ["snakemake", *shlex.split(part)]


FOUND = [*commands()]


def test_commands_of_all_kinds_are_found():
    firsts = [words[0] for _, words in FOUND]
    assert len(firsts) > 60
    assert {"snakemake", "apptainer", "conda"} <= {*firsts}
    assert any("--sdm" in words for _, words in FOUND)


@pytest.fixture(scope="module")
def parser():
    """Snakemake's, with the options of its plugins."""
    return get_argument_parser()


@pytest.mark.parametrize("name", sorted({name for name, _ in FOUND}))
def test_documented_commands_parse(name, parser, capsys):
    for words in (words for place, words in FOUND if place == name):
        line = shlex.join(words)
        assert not (words[0] == "snakemake" and _refused(parser, words[1:])), (
            f"{name}: {line}: {capsys.readouterr().err}"
        )
        if words[0] == "apptainer":
            assert _is_apptainer(words[1:]), f"{name}: {line}"
        if words[0] == "conda":
            assert _is_conda(words[1:]), f"{name}: {line}"


def test_an_option_whose_value_looks_like_an_option_is_refused(parser):
    assert _refused(parser, ["--sdm", "apptainer", "--apptainer-args", "--nv"])
    assert not _refused(parser, ["--sdm", "apptainer", "--apptainer-args=--nv"])
    assert not _is_apptainer(["run", "--nvidia", "launchwise.sif", "tune"])
    assert not _is_conda(["env", "create", "-f", "missing.yaml"])


def _refused(parser, words):
    if len(words) == 1 and words[0].startswith("--"):
        # An option is named, which may want a value.
        return _ends_in_error(parser, words) and _ends_in_error(parser, [*words, "x"])
    return _ends_in_error(parser, words)


def _ends_in_error(parser, words):
    try:
        parser.parse_args([PLACEHOLDERS.sub("1", word) for word in words])
    except SystemExit as ended:
        return ended.code != 0
    return False


def _is_apptainer(words):
    """``build IMAGE DEFINITION``, or ``run|exec [--nv] [--bind A:B] IMAGE [COMMAND]``."""
    if words[0] == "build":
        return len(words) == 3 and words[1].endswith(".sif") and (ROOT / words[2]).is_file()
    rest = shlex.join(words[1:])
    found = re.fullmatch(r"(--nv |--bind \S+ )*\S+\.sif( (?P<command>.*))?", rest)
    known = {command.name for command in app.registered_commands}
    ours = (found["command"] or "").split() if found else []
    return bool(found) and (words[0] != "run" or not ours or ours[0] in {*known, "--version"})


def _is_conda(words):
    """``env create -f FILE``, ``build FOLDER``, ``activate NAME`` or ``run -n NAME COMMAND``."""
    if words[:3] == ["env", "create", "-f"]:
        return (ROOT / words[3]).is_file()
    if words[0] == "build":
        return (Path(ROOT) / words[1] / "meta.yaml").is_file()
    return words[0] == "activate" or (words[:2] == ["run", "-n"] and len(words) > 3)


def test_every_target_and_variable_of_make_is_documented():
    makefile = (ROOT / "Makefile").read_text()
    reference = (ROOT / "docs" / "reference" / "command_line.md").read_text()
    (targets,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.M)
    expected = {f"make {target}" for target in targets.split()} - {"make all"} | {"make"}
    assert {*re.findall(r"^\| `(make[^`]*)` \|", reference, re.M)} == expected
    variables = {*re.findall(r"^([A-Z_]+) \?=", makefile, re.M), "PYTEST_ARGS", "LOCK_ARGS"}
    section = reference.partition("## make\n")[2].partition("\n## ")[0]
    assert {*re.findall(r"[` ]([A-Z_]+)[=`]", section)} == variables
