"""``launchwise check``: a right workload passes, and each planted mistake is told in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from launchwise.base.errors import UserError
from launchwise.base.places import ROOT
from launchwise.cli.app import main
from launchwise.cli.check import checking
from launchwise.cli.check.signatures import check_signatures
from launchwise.workloads.spec import load_spec

CONVOLUTION = ROOT / "docs" / "tutorial" / "example" / "convolution"
SAXPY = ROOT / "docs" / "tutorial" / "example" / "saxpy"

FEW = {"block_size_x": [16], "block_size_y": [16], "tile_size_x": [1, 4], "tile_size_y": [1]}
"""Values that make two configurations."""

needs_nvcc = [
    pytest.mark.nvcc,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The convolution in one file, to change."""
    return Path(shutil.copytree(CONVOLUTION, tmp_path / "convolution"))


def complaint(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a check says on standard error."""
    assert main(["check", str(folder)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert "Traceback" not in said
    return said


def of_spec(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """A change of ``spec.yaml``."""

    def changed(folder: Path) -> None:
        path = folder / "spec.yaml"
        raw = yaml.safe_load(path.read_text())
        change(raw)
        path.write_text(yaml.safe_dump(raw, sort_keys=False))

    return changed


def of_source(old: str, new: str) -> Callable[[Path], None]:
    """A change of the CUDA file."""

    def changed(folder: Path) -> None:
        path = folder / "convolution.cu"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return changed


TOLD_WITHOUT_NVCC: dict[str, tuple[Callable[[Path], None], str]] = {
    "wrong name": (
        of_spec(lambda raw: raw["variants"]["tiled"].update(kernel="convolution")),
        "spec.yaml: variants.tiled.kernel: convolution.cu: unknown kernel 'convolution', did you "
        "mean 'convolution_kernel'?",
    ),
    "macro as a launch tunable": (
        of_spec(lambda raw: raw["tunables"]["tile_size_x"].update(kind="launch")),
        "spec.yaml: tunables.tile_size_x.kind: is launch, but convolution.cu reads tile_size_x as "
        "a macro: say build",
    ),
    "misspelt key": (
        of_spec(lambda raw: raw["variants"]["tiled"].update(tunbles=[])),
        "spec.yaml: variants.tiled.tunbles: unknown key 'tunbles', did you mean 'tunables'?",
    ),
    "division by zero at a corner": (
        of_spec(lambda raw: raw["variants"]["tiled"].update(grid=["w // (tile_size_x - 1)"])),
        "spec.yaml: variants.tiled.grid: 'w // (tile_size_x - 1)' cannot be evaluated: integer",
    ),
}


@pytest.mark.parametrize("what", TOLD_WITHOUT_NVCC)
def test_a_mistake_is_one_line_with_file_and_key(
    folder: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    change, said = TOLD_WITHOUT_NVCC[what]
    change(folder)
    assert said in complaint(folder, capsys)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            of_source("const float *filter, int w", "const float *filter, int pitch, int w"),
            "variants.tiled.arguments: convolution_kernel takes 6 "
            "(output, image, filter, pitch, w, h), 5 are given (output, image, filter, w, h)",
        ),
        (
            of_source("const float *image", "const double *image"),
            "arguments.image: is float32, the kernel takes double: convolution_kernel(image)",
        ),
        (
            of_spec(lambda raw: raw["variants"]["tiled"].update(grid=["image", "h"])),
            "variants.tiled.grid: 'image' reads the argument image; it may read problem parameters",
        ),
        (
            of_spec(lambda raw: raw["variants"]["tiled"].update(repeat={"step": "2 * image"})),
            "variants.tiled.repeat.step: '2 * image' reads the argument image; it may read",
        ),
        (
            of_source("int w, int h)", "int w, size_t h)"),
            "arguments.h: is int32, the kernel takes size_t: convolution_kernel(h)",
        ),
        (
            of_source("int w, int h)", "int w, const int *h)"),
            "arguments.h: is a number, the kernel takes an array, or nullptr in the list of "
            "arguments: convolution_kernel(h)",
        ),
        (
            of_source("float *output,", "const float *output,"),
            "arguments.output: is output, the kernel takes it as const",
        ),
        (
            of_spec(lambda raw: raw["arguments"].pop("h")),
            "variants.tiled.arguments: convolution_kernel takes 5",
        ),
    ],
)
def test_arguments_that_do_not_fit_the_kernel_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], None], said: str
) -> None:
    change(folder)
    assert said in complaint(folder, capsys)


@pytest.mark.parametrize(
    "change",
    [
        of_source("const float *image", "const real *image"),
        of_source("int w, int h)", "unsigned w, const unsigned int h)"),
        of_source("const float *filter", "const float (&filter)[25]"),
        of_source("const float *image", "const float4 *__restrict__ image"),
    ],
    ids=["unknown type", "sign", "reference", "vector"],
)
def test_what_cannot_be_read_off_a_kernel_is_no_complaint(
    folder: Path, change: Callable[[Path], None]
) -> None:
    change(folder)
    check_signatures(folder, load_spec(folder))


@pytest.mark.parametrize(
    ("head", "kernel", "said"),
    [
        ("", "filters::convolution_kernel", "convolution.cu has no namespace filters"),
        (
            "template <int A, int B> ",
            "convolution_kernel<4>",
            "convolution_kernel takes 2 template arguments (A, B), 1 are given",
        ),
        ("", "convolution_kernel<4>", "is no template: name it without arguments"),
        ("template <int A, int B = 2> ", "convolution_kernel<4>", ""),
        ("template <int... Ns> ", "convolution_kernel<4, 5>", ""),
    ],
)
def test_namespaces_and_template_arguments_are_compared(
    folder: Path, head: str, kernel: str, said: str
) -> None:
    of_source("__global__ void conv", f"{head}__global__ void conv")(folder)
    of_spec(lambda raw: raw["variants"]["tiled"].update(kernel=kernel))(folder)
    if not said:
        check_signatures(folder, load_spec(folder))
        return
    with pytest.raises(UserError) as refused:
        check_signatures(folder, load_spec(folder))
    assert refused.value.key == "variants.tiled.kernel"
    assert said in refused.value.message


def test_a_misspelt_constant_array_is_told_with_the_one_that_is_meant(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_source("__global__ void conv", "__constant__ float d_filter[25];\n__global__ void conv")(
        folder
    )
    of_spec(lambda raw: raw["arguments"]["filter"].update(constant="d_filtr"))(folder)
    assert (
        "spec.yaml: arguments.filter.constant: unknown __constant__ array 'd_filtr', did you mean "
        "'d_filter'? (allowed: d_filter)"
    ) in complaint(folder, capsys)


@pytest.mark.parametrize(("value", "text"), [(True, "1"), (False, "0"), (2, "2")])
def test_a_value_may_be_true(folder: Path, value: Any, text: str) -> None:
    of_spec(lambda raw: raw["arguments"]["w"].update(value=value))(folder)
    assert load_spec(folder).arguments["w"].value == text


def test_an_exception_in_host_code_is_the_users(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(SAXPY, tmp_path / "saxpy"))
    path = folder / "host" / "workload.py"
    text = path.read_text()
    assert '"ITEMS": configuration["items"]' in text
    path.write_text(text.replace('configuration["items"]', 'configuration["itms"]'))
    said = complaint(folder, capsys)
    assert "workload.py" in said
    assert "KeyError: 'itms'" in said
    assert "report it" not in said


def test_a_syntax_error_in_host_code_names_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(SAXPY, tmp_path / "saxpy"))
    path = folder / "host" / "workload.py"
    path.write_text(path.read_text() + "\ndef broken(:\n")
    said = complaint(folder, capsys)
    assert "workload.py: line" in said
    assert "SyntaxError" in said


def test_a_folder_that_cannot_name_a_workload_is_told_with_a_name_near_to_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "spec.yaml").read_text()
    for workload in (folder.name, "my-sums"):
        other = folder.with_name("my-sums")
        shutil.copytree(folder, other, dirs_exist_ok=True)
        named = text.replace(f"workload: {folder.name}", f"workload: {workload}")
        (other / "spec.yaml").write_text(named)
        assert main(["check", str(other)]) == 2
        assert capsys.readouterr().err == (
            f"launchwise: {other}: names the workload: lower-case letters, digits and _, "
            "a letter first; such as my_sums\n"
        )


PROBLEMS = {"w": [64], "h": [64]}


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        (
            {"problems": [{"weight": [64], "h": [64]}]},
            "problems: unknown problem parameter 'weight'",
        ),
        (
            {"problems": [{"w": [64], "hi": [64]}]},
            "problems: unknown problem parameter 'hi'",
        ),
        ({"problems": [{"w": [64]}]}, "problems: h is missing"),
        ({"problems": [{**PROBLEMS, "w": ["many"]}]}, "problems: w: must be"),
        (
            {"problems": [{**PROBLEMS, "only": {"block": [16]}}]},
            "problems.only: unknown tunable 'block'",
        ),
        ({"problems": [PROBLEMS], "anew": [{"wide": [64]}]}, "anew: unknown column 'wide'"),
        ({"problem": [PROBLEMS]}, "problem: unknown key 'problem'"),
    ],
)
def test_a_mistake_in_the_sweep_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], sweep: dict[str, Any], said: str
) -> None:
    (folder / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    assert f"sweep.yaml: {said}" in complaint(folder, capsys)


def test_a_right_sweep_is_counted_and_lacks_a_study_of_few_sizes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for sizes, lacks in (([64, 128], True), ([64, 128, 256], False)):
        (folder / "sweep.yaml").write_text(yaml.safe_dump({"problems": [{"w": sizes, "h": sizes}]}))
        main(["check", str(folder)])
        said = capsys.readouterr().out
        assert f"sweep: the baseline may run each of {len(sizes) ** 2} problems" in said
        assert ("no study: fewer than three sizes" in said) == lacks


@pytest.mark.parametrize(
    ("constraints", "own", "key", "said"),
    [
        ([], ["block_size_x > 9999"], "variants.more.constraints", "block_size_x > 9999 never"),
        (["variant != 'more'"], [], "constraints", "variant != 'more' never holds"),
        (
            [],
            ["tile_size_x == 1", "tile_size_x == 2"],
            "variants.more.constraints",
            "do not hold together",
        ),
    ],
)
def test_a_variant_that_no_configuration_may_run_is_named_with_what_refuses_it(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    constraints: list[str],
    own: list[str],
    key: str,
    said: str,
) -> None:
    def more(raw: dict[str, Any]) -> None:
        first = next(iter(raw["variants"].values()))
        raw["variants"]["more"] = {**first, "constraints": [*first.get("constraints", []), *own]}
        raw["constraints"] = [*raw.get("constraints", []), *constraints]

    of_spec(more)(folder)
    told = complaint(folder, capsys)
    assert f"spec.yaml: {key}: no configuration of more may run: " in told
    assert said in told


def test_a_variant_for_few_sizes_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def more(raw: dict[str, Any]) -> None:
        first = next(iter(raw["variants"].values()))
        own = ["w == 1000", "h == 777"]
        raw["variants"]["more"] = {**first, "constraints": [*first.get("constraints", []), *own]}

    of_spec(more)(folder)
    main(["check", str(folder)])
    assert "no configuration of more" not in capsys.readouterr().err


def test_open_questions_of_a_draft_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    spec = folder / "spec.yaml"
    title, *rest = spec.read_text().splitlines()
    told = []
    for head, count in (
        ([f'{title}  # A question? "# ?"'], 0),
        ([f"{title}  # ? name"], 1),
        (["# ? one", f"{title}  # ? name", *(f"# ? number {n}" for n in range(5))], 7),
    ):
        spec.write_text("\n".join([*head, *rest]) + "\n")
        main(["check", str(folder)])
        lines = [one for one in capsys.readouterr().out.splitlines() if one.startswith("open")]
        told.append(lines)
        assert len(lines) == (count > 0)
    assert told[1] == ["open     spec: 1 line is to be decided: # ? in line 1 of spec.yaml"]
    assert told[2] == [
        "open     spec: 7 lines are to be decided: # ? in lines 1, 2, 3, 4, 5, ... of spec.yaml"
    ]


def test_nothing_compiled_is_no_success(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    assert main(["check", str(folder)]) == 1
    said = capsys.readouterr()
    assert "left out compile: nvcc is not on the PATH" in said.out
    assert said.err == "launchwise: nothing was compiled: nvcc is not on the PATH\n"


class TestWithNvcc:
    """What only a compiler finds."""

    pytestmark = needs_nvcc

    @pytest.fixture
    def folder(self, folder: Path) -> Path:
        """The convolution with few builds."""

        def few(raw: dict[str, Any]) -> None:
            for name, values in FEW.items():
                raw["tunables"][name]["values"] = values

        of_spec(few)(folder)
        return folder

    def test_a_right_workload_passes(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["check", str(folder), "--json"]) == 0
        steps = json.loads(capsys.readouterr().out)
        assert [step["name"] for step in steps] == ["spec", "expressions", "host", "compile"]
        assert all(step["passed"] for step in steps)

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("float sum = 0;", "float sum = 0", "nvcc failed: convolution.cu:14: expected a"),
            (
                "__global__ void conv",
                "template <int N> __global__ void conv",
                "convolution_kernel is a template: name its arguments",
            ),
        ],
    )
    def test_a_mistake_in_the_source_ends_it(
        self, folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
    ) -> None:
        of_source(old, new)(folder)
        assert said in complaint(folder, capsys)

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ('static_assert(tile_size_x < 4, "too many pixels");', "too many pixels"),
            pytest.param(
                "__shared__ volatile float s[tile_size_x * 4096]; s[threadIdx.x] = w;",
                "shared",
                marks=pytest.mark.slow,
            ),
        ],
    )
    def test_a_configuration_that_nvcc_refuses_is_named_with_its_words(
        self,
        folder: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        line: str,
        words: str,
    ) -> None:
        of_source("    const int x0", f"    {line}\n    const int x0")(folder)
        assert main(["check", str(folder)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert any(line.startswith("some refused compile: ") for line in lines)
        (told,) = (line for line in lines if line.startswith("refused  compile: "))
        assert "tile_size_x=4" in told
        assert words in told
        assert not any(line.startswith("ok ") and "compile" in line for line in lines)
        # What nvcc said is kept.
        monkeypatch.setattr(checking, "compile_bundle", None)
        assert main(["check", str(folder)]) == 0
        assert capsys.readouterr().out.splitlines() == lines
        assert main(["check", str(folder), "--json"]) == 0
        steps = json.loads(capsys.readouterr().out)
        assert [step["status"] for step in steps[3:]] == ["some refused", "refused"]
        assert not any(step["passed"] for step in steps[3:])
