# ruff: noqa: E731, RUF059
"""One matrix per block of rows, chosen by expert ids; imported names of another package."""

from vllm.triton_utils import tl, triton


@triton.jit
def expert_gemm(
    a_ptr, b_ptr, c_ptr, expert_ids_ptr,
    M, N, K,
    stride_am, stride_ak, stride_be, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    compute_type: tl.constexpr,
):  # fmt: skip
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    expert = tl.load(expert_ids_ptr + pid_m)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_ptrs = b_ptr + expert * stride_be + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, tl.cdiv(K, BLOCK_K)):
        left = inner < K - start * BLOCK_K
        a = tl.load(a_ptrs, mask=(rows < M)[:, None] & left[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=left[:, None] & (columns < N)[None, :], other=0.0)
        total += tl.dot(a, b)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, total.to(compute_type), mask=(rows < M)[:, None] & (columns < N)[None, :])


def expert_matmul(A, B, C, expert_ids):
    M, K = A.shape
    E, _, N = B.shape
    grid = lambda META: (triton.cdiv(M, META["BLOCK_M"]), triton.cdiv(N, META["BLOCK_N"]))
    expert_gemm[grid](
        A, B, C, expert_ids, M, N, K,
        A.stride(0), A.stride(1), B.stride(0), B.stride(1), B.stride(2), C.stride(0), C.stride(1),
        BLOCK_M=16, BLOCK_N=32, BLOCK_K=32, compute_type=tl.float16,
    )  # fmt: skip
