"""Functions of the host in CUDA files: emptied where they launch kernels that no build asks for."""

import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.cuda_text.host_code import macros_in, without_host_bodies
from tests.measuring.test_units import SPEC, UNITS, changed, compiled, write
from tests.support.nvcc import kept_nvcc

LAUNCHING = (UNITS / "launching.cu").read_text()


class TestHostLaunches:
    """Functions of the host launch kernels that no build asks for."""

    pytestmark = kept_nvcc

    def test_only_the_kernels_of_the_build_are_compiled(self, tmp_path):
        spec = changed(SPEC)
        spec["tunables"]["UNROLL"]["values"] = [1, 4]
        spec["variants"]["only"]["kernel"] = "tile_sum<UNROLL, false>"
        source = LAUNCHING.replace("@@", "1").encode()
        folder = write(tmp_path / "host", spec, {"host.cu": source})
        bundle, builds = compiled(folder, {"n": 1000})
        assert not bundle.refused
        assert len(builds) == 4
        for build in builds:
            (name,) = build.kernels
            side = int(name[len("tile_sum<")])
            block = int(dict(build.defines)["BLOCK"])
            assert bundle.kernel(build, name).shared_bytes == 4 * side * block
        for name in bundle.index["cubins"]:
            assert b"3000" not in bundle.cubin(name)

    def test_a_line_behind_them_keeps_its_number(self, tmp_path):
        spec = changed(SPEC)
        spec["variants"]["only"]["kernel"] = "tile_sum<UNROLL + 1, false>"
        source = LAUNCHING.replace("@@", "missing")
        folder = write(tmp_path / "host", spec, {"host.cu": source.encode()})
        line = source.count("\n")
        with pytest.raises(UserError, match=rf"host\.cu:{line}: .*missing"):
            compiled(folder, {"n": 1000})

    def test_an_instantiation_of_host_code_that_does_not_fit_is_told(self, tmp_path):
        spec = changed(SPEC)
        spec["variants"]["only"]["kernel"] = "tile_sum<UNROLL + 1, false>"
        # The type of the function depends on its body: it keeps it.
        source = LAUNCHING.replace("@@", "1").replace("static void by_macro", "auto by_macro")
        folder = write(tmp_path / "host", spec, {"host.cu": source.encode()})
        with pytest.raises(UserError, match=r"tile_sum<1000, true>.*uses too much") as refused:
            compiled(folder, {"n": 1000})
        assert str(refused.value).endswith(
            "; this build does not ask for it: host code of the file instantiates it"
        )


@pytest.mark.parametrize(
    "function", read_yaml(ROOT / "tests/measuring/data/unclear_functions.yaml")
)
def test_a_function_that_is_not_clearly_one_of_the_host_keeps_its_body(function):
    text = f"#define both __host__ __device__\n#define HD both\n{function}\nint g();\n"
    assert without_host_bodies(text, macros_in(text), {"k"}) == text
    other = f"{text}void launch() {{ k<<<1, 1>>>(); }}\n"
    kept = without_host_bodies(other, macros_in(other), {"k"})
    assert kept.startswith(text)


@pytest.mark.parametrize("said", ['puts(R"({")");', "int n = 1'000;", 'puts("{\'");', "// {\r\n"])
def test_braces_in_texts_and_comments_do_not_count(said):
    text = f"void f() {{ {said} k<<<1, 1>>>(); }}\nint g();\n"
    emptied = without_host_bodies(text, {}, {"k"})
    assert "k<<<" not in emptied
    assert (emptied.count("\n"), emptied[-10:]) == (text.count("\n"), "\nint g();\n")
