"""Launches the kernel of the tutorial as an answer says: cupy_smooth.py answer.json smooth.cu."""

import json
import sys
from pathlib import Path


def options_and_launch(answer):
    """Options of the compiler, and what a launch takes, of the configuration to take."""
    best = answer["suggestions"][0]
    tunables = {name: value for name, value in best["configuration"].items() if name != "variant"}
    options = tuple(f"-D{name}={value}" for name, value in tunables.items())
    (launch,) = best["launches"]
    return options, tuple(launch["grid"]), tuple(launch["block"]), launch["shared_bytes"] or 0


def smooth(image, answer, source):
    """Mean of each point and its four neighbours, for a float32 array on the GPU."""
    import cupy

    options, grid, block, shared_bytes = options_and_launch(answer)
    kernel = cupy.RawKernel(f'extern "C" {{\n{source}\n}}', "smooth", options)
    image = cupy.ascontiguousarray(image, dtype=cupy.float32)
    output = cupy.empty_like(image)
    height, width = map(cupy.int32, image.shape)
    kernel(grid, block, (output, image, width, height), shared_mem=shared_bytes)
    return output


if __name__ == "__main__":
    import cupy

    answer, source = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]).read_text()
    problem = answer["problem"]
    image = cupy.random.random((problem["height"], problem["width"]), dtype=cupy.float32)
    print(float(smooth(image, answer, source).mean()))
