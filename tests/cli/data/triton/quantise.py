"""Quantises rows to int8 with a scale per row."""

import torch
import triton
import triton.language as tl


@triton.heuristics(
    {
        "BLOCK": lambda args: triton.next_power_of_2(args["n_cols"]),
        "num_warps": lambda args: 4 if args["n_cols"] < 2048 else 8,
    }
)
@triton.jit
def quantise_rows(x_ptr, q_ptr, scale_ptr, n_cols, BLOCK: "tl.constexpr"):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0) / 127.0, 1e-10)
    q = tl.floor(x / scale + 0.5).to(tl.int8)
    tl.store(q_ptr + row * n_cols + cols, q, mask=mask)
    tl.store(scale_ptr + row, scale)


def quantise(x):
    q = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    scales = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    quantise_rows[(x.shape[0],)](x, q, scales, x.shape[1])
    return q, scales
