"""Histogram by atomics; Triton sets the bins to zero before each run."""

import triton
import triton.language as tl


def zero(nargs):
    nargs["hist_ptr"].zero_()


@triton.autotune(
    configs=[triton.Config({"BLOCK": 1 << i}, num_warps=4, pre_hook=zero) for i in range(8, 11)],
    key=["n"],
    prune_configs_by={"early_config_prune": lambda configs, *args, **kwargs: configs},
)
@triton.jit
def histogram(data_ptr, hist_ptr, n, num_bins, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(data_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(hist_ptr + value % num_bins, 1, mask=mask)
