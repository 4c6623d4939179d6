"""Telemetry from NVML: the real nvidia-ml-py, with a driver that is made for the test."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest
from samples import ROOT

from launchwise.base.typed import read_yaml
from launchwise.measuring.cards import NoNvml
from launchwise.measuring.telemetry import REASONS, THROTTLED, Telemetry, nvml_source


def test_the_reasons_are_those_of_nvml():
    pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    known = {
        value: name.removeprefix("nvmlClocksThrottleReason").lower().replace("slowdown", "")
        for name, value in vars(pynvml).items()
        if name.startswith("nvmlClocksThrottleReason") and not name.endswith(("All", "None"))
    }
    known = {bit: name for bit, name in known.items() if bit not in (0x1, 0x2)}
    assert known.keys() == REASONS.keys()
    for bit, name in REASONS.items():
        assert known[bit].startswith(name.replace("_", "").replace("slowdown", "")), name
    assert set(REASONS.values()) > THROTTLED


def test_a_card_that_is_not_there_is_no_telemetry_and_no_error():
    source = nvml_source("GPU-00000000-0000-0000-0000-000000000000")
    with pytest.raises(NoNvml, match=r"NVIDIA driver|nvidia-ml-py"):
        source()
    with Telemetry(source) as telemetry:
        assert telemetry.energy_j(0, 1, wait_s=20) is None
        found = telemetry.during(0, time.monotonic())
    assert set(found.values()) == {None}


DATA = ROOT / "tests/measuring/data"
(READER,) = read_yaml(DATA / "nvml.yaml").values()


@pytest.fixture(scope="module")
def read_stub(root, tmp_path_factory):
    """Reads a card once through the real nvidia-ml-py, from a driver that is made for the test."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folders = {}
    for old in (False, True):
        folders[old] = tmp_path_factory.mktemp("driver")
        command = [compiler, "-shared", "-fPIC", "-o", str(folders[old] / "libnvidia-ml.so.1")]
        command += ["-DOLD_DRIVER"] if old else []
        subprocess.run([*command, str(root / "tests/support/nvml_stub.c")], check=True)

    def read(uuid="GPU-stub", refused="", old=False):
        environment = {"LD_LIBRARY_PATH": str(folders[old]), "REFUSED": refused}
        done = subprocess.run(
            [sys.executable, "-c", READER, uuid],
            env={**os.environ, "PYTHONPATH": str(root), **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return read


STUB = {
    "sm_clock_mhz": 1980.0,
    "memory_clock_mhz": 3201.0,
    "temperature_c": 41.0,
    "power_w": 612.25,
    "energy_j": 5000000.25,
    "throttle": 0x44,
}


def test_an_older_driver_gives_what_it_has(read_stub):
    assert read_stub(old=True) == {**STUB, "power_w": 300.5, "throttle": 0x21}


@pytest.mark.parametrize(("refused", "changed"), read_yaml(DATA / "refused.yaml").items())
def test_nvml_is_read_in_our_units_and_what_it_refuses_is_missing(read_stub, refused, changed):
    assert read_stub(refused=refused) == pytest.approx({**STUB, **changed}, nan_ok=True)


def test_a_driver_without_the_card_and_one_that_does_not_start(read_stub):
    assert read_stub("GPU-other") == {"error": "NVML: Not Found"}
    said = "the NVIDIA driver does not respond: Not Supported"
    assert read_stub(refused="nvmlInitWithFlags") == {"error": said}
