"""The wheel, built once, and an environment that it is installed in."""

import pytest
from installed import Installed, build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel of this tree."""
    pytest.importorskip("hatchling", reason="hatchling builds the wheel: make test installs it")
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory, kernel_cache):
    """An environment of this interpreter with the wheel, outside of the clone."""
    folder = tmp_path_factory.mktemp("installed") / "with a space"
    folder.mkdir()
    (folder / "kernels").symlink_to(kernel_cache)
    return Installed.make(folder, wheel)
