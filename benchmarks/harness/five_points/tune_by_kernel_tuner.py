"""Kernel Tuner on ``mean.cu`` of this folder: its side of ``tune_small_space.py``, a whole process.

Arguments: n, and the values of the tunables as JSON. Prints JSON.
"""

import json
import sys

import numpy as np
from kernel_tuner import tune_kernel

n, shapes = int(sys.argv[1]), json.loads(sys.argv[2])
image = np.random.default_rng(1).standard_normal((n, n)).astype(np.float32)
with open("mean.cu", encoding="utf-8") as source:
    text = source.read()
given = [np.zeros_like(image), image, np.int32(n)]
results, _ = tune_kernel("mean", text, (n, n), given, shapes, lang="NVCUDA", quiet=True)
best = min((each for each in results if isinstance(each["time"], float)), key=lambda e: e["time"])
print(json.dumps({"count": len(results), "best": {k: best[k] for k in shapes}, "ms": best["time"]}))
