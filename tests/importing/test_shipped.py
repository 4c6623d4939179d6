"""Configuration files of a library become usual choices: what it launches for any size."""

import json
from functools import partial

import pytest
from command_line import line_of
from expert_files import THEIRS, VALUES, documented_mappings, grouped_spec, problem, theirs
from hypothesis import given
from hypothesis import strategies as st

from launchwise.base.errors import UserError
from launchwise.base.typed import validated
from launchwise.cli.app import main
from launchwise.importing import shipped
from launchwise.importing.shipped import shipped_choices
from launchwise.workloads.sources import cpu_limit
from launchwise.workloads.spec import load_spec
from launchwise.workloads.usual import ConfigFiles, usual_configuration

NAME = "E=8,N=1024,device_name=Made-up_Big_80GB.json"


@pytest.fixture
def folder(tmp_path):
    """A workload, the guide's mapping, and a file that a library might ship."""
    grouped_spec(tmp_path / "grouped")
    (tmp_path / "vllm.yaml").write_text(documented_mappings()["vllm.yaml"])
    shipped = {"triton_version": "9.9", "64": theirs(BLOCK_M=64), "4": theirs(num_stages=2)}
    (tmp_path / NAME).write_text(json.dumps(shipped))
    return tmp_path


def words(folder, *more):
    mapping = ["--mapping", str(folder / "vllm.yaml")]
    return ["import-shipped", str(folder / "grouped"), str(folder / NAME), *mapping, *more]


def usual(folder, tokens, **changed):
    spec = load_spec(folder / "grouped")
    return usual_configuration(spec.usual, problem(tokens, dtype="bfloat16", **changed), spec)


def test_what_a_library_launches_becomes_usual(folder, capsys):
    for _ in range(2):  # It writes its own file anew.
        assert main(words(folder)) == 0
    said = f"{folder / 'grouped' / 'usual.yaml'}: 2 choices for Made-up_Big_80GB, tuned with Triton"
    assert capsys.readouterr().out == f"{said} 9.9\n" * 2
    # 34 is as far from 4 as from 64: the first of the file is taken.
    for tokens, changed in ((1, {"num_stages": 2}), (33, {"num_stages": 2})):
        assert usual(folder, tokens) == {"variant": "triton", **VALUES, **changed}
    for tokens in (34, 35, 5000):
        assert usual(folder, tokens) == {"variant": "triton", **VALUES, "BLOCK_M": 64}
    assert usual(folder, 4, n=2049) is not None  # n // 2 is 1024 as well.
    for other in ({"n": 512}, {"experts": 4}, {"k": 64}):
        assert usual(folder, 4, **other) is None


def test_a_name_that_can_be_read_in_very_many_ways_is_one_line(folder, monkeypatch):
    parts = "".join(f"{{n + {number}}}" for number in range(25))
    path = folder / f"{'1' * 200}.txt"
    path.write_text("{}")
    mapping = validated(ConfigFiles, {"file": f"{{device}}{parts}.json", "key": "n"}, "mapping")
    monkeypatch.setattr(shipped, "cpu_limit", partial(cpu_limit, seconds=0.1))
    with pytest.raises(UserError, match=r"takes more than 0\.1 s of CPU time to read"):
        shipped_choices([path], load_spec(folder / "grouped"), mapping)


@given(
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=8, unique=True),
    asked=st.lists(st.integers(1, 6000), min_size=1, max_size=20),
    is_linear=st.booleans(),
)
def test_every_size_has_what_the_reader_of_the_files_takes(
    tmp_path_factory, sizes, asked, is_linear
):
    folder = tmp_path_factory.mktemp("shipped")
    spec = many_stages(folder / "grouped")
    mapping = validated(
        ConfigFiles,
        {
            **{"file": "{experts},{device}.json", "key": "tokens", "tunables": THEIRS},
            "nearest": "linear" if is_linear else "logarithmic",
        },
        "mapping",
    )
    path = folder / "8,made_up.json"
    stages = {size: 1 + place for place, size in enumerate(sizes)}
    path.write_text(json.dumps({size: theirs(num_stages=stages[size]) for size in sizes}))
    rules = shipped_choices([path], spec, mapping).rules

    def far(size, tokens):
        # Ratios of whole numbers: logarithms of equal ones may differ.
        low, high = sorted((size, tokens))
        return abs(size - tokens) if is_linear else high / low

    for tokens in [*asked, *((low + high) // 2 for low in sizes for high in sizes)]:
        taken = min(sizes, key=lambda size: far(size, tokens))
        found = usual_configuration(rules, problem(tokens), spec)
        assert found["num_stages"] == stages[taken]


def many_stages(folder):
    """The workload with a value of ``num_stages`` for each size."""
    grouped_spec(folder)
    text = (folder / "spec.yaml").read_text()
    stages = "num_stages: {kind: build, values: [2, 3]}"
    assert stages in text
    many = f"num_stages: {{kind: build, values: {[*range(1, 9)]}}}"
    (folder / "spec.yaml").write_text(text.replace(stages, many))
    return load_spec(folder)


WRONG = {
    "a value of its own": (NAME, {"4": theirs(num_stages=5)}, "4: num_stages: 5 is no value of"),
    "a missing tunable": (NAME, {"4": {"BLOCK_SIZE_M": 16}}, "4: BLOCK_SIZE_N: is missing, which"),
    "another choice": (NAME, {"4": theirs(SPLIT_K=2)}, "4: SPLIT_K: is no tunable of the workload"),
    "no size": (NAME, {"four": theirs()}, "four: is no size"),
    "no configuration": (NAME, {"4": 5}, "4: must be a configuration"),
    "nothing": (NAME, {}, "holds no configuration"),
    "a list": (NAME, [], ""),
    "another name": ("E=8.json", {"4": theirs()}, "is not named as the mapping says: E="),
    "another device": (
        "E=8,N=256,device_name=small.json",
        {"4": theirs()},
        f"is of small, {NAME} of Made-up_Big_80GB: name files of one device",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_cannot_be_judged_is_one_line(folder, capsys, case):
    name, content, said = WRONG[case]
    (folder / name).write_text(json.dumps(content))
    more = [] if name == NAME else [str(folder / name)]
    assert line_of(capsys, *words(folder, *more)).startswith(f"{folder / name}: {said}")
    assert not (folder / "grouped" / "usual.yaml").exists()


def test_choices_of_somebody_stay(folder, capsys):
    own = "choices:\n  - {reason: mine, configuration: {variant: triton, BLOCK_M: 16}}\n"
    (folder / "grouped" / "usual.yaml").write_text(own)
    said = "was not written by launchwise import-shipped: --replace writes over it"
    assert said in line_of(capsys, *words(folder))
    for wrong, where in ((NAME, "4: must be"), ("vllm.yaml", "vllm.yaml")):
        text = (folder / wrong).read_text()
        (folder / wrong).write_text('{"4": 5}')
        # What is wrong with the files and the mapping comes first.
        assert where in line_of(capsys, *words(folder))
        assert where in line_of(capsys, *words(folder, "--replace"))
        (folder / wrong).write_text(text)
    assert (folder / "grouped" / "usual.yaml").read_text() == own
    assert main(words(folder, "--replace")) == 0
    assert usual(folder, 4) == {"variant": "triton", **VALUES, "num_stages": 2}


def test_a_tunable_that_the_mapping_leaves_out_is_named_as_such(folder, capsys):
    mapping = folder / "vllm.yaml"
    mapping.write_text(mapping.read_text().replace("tunables: {", "tunables: {num_stages: null, "))
    said = "4: num_stages: is a tunable that the mapping leaves out (num_stages: null under"
    assert line_of(capsys, *words(folder)).startswith(f"{folder / NAME}: {said}")
    shipped = {"64": {key: value for key, value in theirs().items() if key != "num_stages"}}
    (folder / NAME).write_text(json.dumps(shipped))
    assert main(words(folder)) == 0
    # It has a constant value: that one may be held.
    mapping.write_text(mapping.read_text() + "constants: {num_stages: 3}\n")
    (folder / NAME).write_text(json.dumps({"64": theirs()}))
    assert main(words(folder)) == 0
    (folder / NAME).write_text(json.dumps({"64": theirs(num_stages=2)}))
    said = f"{folder / NAME}: 64: num_stages: is 2, not 3 as constants say"
    assert line_of(capsys, *words(folder)).startswith(said)
