"""Builds and bundles."""

import itertools
import re
import zipfile
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.base.errors import UserError
from launchwise.measuring.bundle import INDEX, Bundle, Kernel, write_bundle
from launchwise.workloads.builds import Build, spread

names = st.sampled_from(["REAL", "INDEX", "RADIUS", "ROW_PADDING"])
defines = st.dictionaries(names, st.integers(0, 3) | st.sampled_from(["float", "double"]))
builds = st.builds(Build.of, st.sampled_from(["a.cu", "b.cu"]), defines)


@given(defines)
def test_a_build_does_not_depend_on_the_order_of_its_macros(macros):
    turned = dict(reversed(list(macros.items())))
    assert Build.of("a.cu", macros) == Build.of("a.cu", turned)
    assert Build.of("a.cu", macros).key == Build.of("a.cu", turned).key


@given(st.sets(builds, min_size=2, max_size=12))
def test_different_builds_have_different_symbols_that_cuda_can_name(found):
    symbols = {build.symbol("step") for build in found}
    assert len(symbols) == len(found)
    assert all(re.fullmatch(r"[A-Za-z_]\w*", symbol) for symbol in symbols)


@given(st.lists(builds, max_size=20), st.integers(-1, 9))
def test_spread_is_a_partition_of_nearly_equal_groups(found, units):
    groups = spread(found, units)
    assert Counter(itertools.chain(*groups)) == Counter(set(found))
    assert 1 <= len(groups) <= max(1, units)
    sizes = [len(group) for group in groups]
    assert max(sizes) - min(sizes) <= 1
    assert groups == spread(reversed(found), units)


KERNEL = Kernel("0.cubin", "step_x", 32, 8, 1024)
BUILD = Build.of("a.cu", {"REAL": "float"})


def write(path):
    """A small bundle."""
    kernel = {
        **{"cubin": "0.cubin", "symbol": "step_x"},
        **{"registers": 32, "spill_bytes": 8, "shared_bytes": 1024},
    }
    index = {
        **{"arch": "sm_90", "toolkit": "13.0", "fingerprint": "f", "cubins": ["0.cubin"]},
        "builds": {BUILD.key: {"step": kernel}},
    }
    write_bundle(path, index, {"0.cubin": bytes(range(256)) * 8})


def test_a_bundle_comes_back_as_it_was_written(tmp_path):
    write(tmp_path / "a")
    write(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    bundle = Bundle(tmp_path / "a")
    assert (bundle.arch, bundle.toolkit, bundle.fingerprint) == ("sm_90", "13.0", "f")
    assert bundle.kernel(BUILD, "step") == KERNEL
    assert bundle.cubin("0.cubin") == bytes(range(256)) * 8


@pytest.mark.parametrize(
    ("build", "name"), [(BUILD, "other"), (Build.of("a.cu", {"REAL": "double"}), "step")]
)
def test_a_kernel_that_is_not_in_a_bundle_is_one_line(tmp_path, build, name):
    write(tmp_path / "a")
    with pytest.raises(UserError, match=f"holds no {name} from a.cu"):
        Bundle(tmp_path / "a").kernel(build, name)


def test_a_bundle_cut_anywhere_is_one_line(tmp_path):
    path = tmp_path / "x.cubins"
    write(path)
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(UserError, match="is not a cubin bundle") as caught:
            Bundle(path)
        assert str(caught.value).startswith(f"{path}: ")


def test_a_damaged_bundle_is_found_or_still_says_the_same(tmp_path):
    path = tmp_path / "x.cubins"
    write(path)
    content, refused = path.read_bytes(), 0
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            assert Bundle(path).cubin("0.cubin") == bytes(range(256)) * 8
        except UserError:
            refused += 1
    assert refused > len(content) // 2


def test_a_missing_file_and_a_zip_of_something_else_are_one_line(tmp_path):
    path = tmp_path / "x.cubins"
    with pytest.raises(UserError, match="is not a cubin bundle"):
        Bundle(path)
    for content in ("[]", "3", "{}", '{"cubins": ["none"]}', '{"cubins": 3}', "{"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(INDEX, content)
        with pytest.raises(UserError, match="is not a cubin bundle"):
            Bundle(path)
