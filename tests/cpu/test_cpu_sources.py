"""Sources of ``data/sources.yaml``: their kernels store what they should, or are refused in words.

What is refused is one line with file and line number."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from launchwise.workloads.builds import Build
from launchwise.workloads.device import LaunchFailed
from tests.cpu.runs import device_for, launch

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

LISTED = yaml.safe_load((Path(__file__).parent / "data" / "sources.yaml").read_text())
CASES = {
    f"{name}: {own}" if own else name: (case, {"EACH": own, **texts})
    for name, case in LISTED.items()
    for own, texts in case.get("each", {"": {}}).items()
}


@pytest.mark.parametrize("name", CASES)
def test_a_source_is_run_or_refused_in_words(name, tmp_path):
    case, texts = CASES[name]

    def filled(text):
        for word, own in texts.items():
            text = text.replace(word, own)
        return text

    sources = {"f.cu": case["source"], **case.get("files", {})}
    device = device_for(tmp_path, {file: filled(text) for file, text in sources.items()})

    def stored(kernel, build):
        arguments, block = [np.zeros(1, np.int32)], (case.get("threads", 1), 1, 1)
        return int(launch(device, build, kernel, (1, 1, 1), block, arguments)[0][0])

    for kernels in case.get("builds", [[]]):
        build = Build.of("f.cu", case.get("macros", {}), kernels)
        values = case.get("values", {})
        assert {kernel: stored(kernel, build) for kernel in values} == values
        for kernel, said in case.get("refused", {}).items():
            with pytest.raises(LaunchFailed, match=filled(said)) as raised:
                stored(kernel, build)
            assert type(raised.value).__name__ == case["kind"]
            assert "\n" not in str(raised.value)
