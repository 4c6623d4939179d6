"""Dropout with a seed; no host code."""

import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (512, 1024) for w in (2, 4)],
    key=["n"],
    restore_value=["counter_ptr"],
)
@triton.jit
def seeded_dropout(x_ptr, out_ptr, counter_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)
    tl.atomic_add(counter_ptr, tl.sum((keep & mask).to(tl.int32)))
