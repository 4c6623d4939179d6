# ruff: noqa: E501, E731, PT018
"""Attention, forward: a helper function, filtered configurations, a constexpr for the head."""

import os

import torch
import triton
import triton.language as tl

configs = [
    triton.Config({"BLOCK_M": BM, "BLOCK_N": BN}, num_stages=s, num_warps=w)
    for BM in [64, 128]
    for BN in [32, 64]
    for s in ([1] if os.environ.get("FAST") else [2, 3])
    for w in [4, 8]
]


def keep(conf):
    BLOCK_M = conf.kwargs["BLOCK_M"]
    return not (BLOCK_M * conf.kwargs["BLOCK_N"] < 64 * 64 and conf.num_warps == 8)


@triton.jit
def _inner(acc, l_i, m_i, q, K_ptrs, V_ptrs, stride_kn, stride_vn, lo, hi, N_CTX, offs_n, BLOCK_N: tl.constexpr):  # fmt: skip
    for start in range(lo, hi, BLOCK_N):
        inside = start + offs_n < N_CTX
        k = tl.load(K_ptrs + start * stride_kn, mask=inside[None, :], other=0.0)
        qk = tl.where(inside[None, :], tl.dot(q, k), -1.0e6)
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(V_ptrs + start * stride_vn, mask=inside[:, None], other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m_i = m_ij
    return acc, l_i, m_i


@triton.autotune(list(filter(keep, configs)), key=["N_CTX", "HEAD_DIM"])
@triton.jit
def _attn_fwd(
    Q, K, V, sm_scale, L, Out,
    stride_qz, stride_qh, stride_qm, stride_qk,
    stride_kz, stride_kh, stride_kn, stride_kk,
    stride_vz, stride_vh, stride_vn, stride_vk,
    stride_oz, stride_oh, stride_om, stride_on,
    Z, H, N_CTX,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    start_m = tl.program_id(0)
    off_hz = tl.program_id(1)
    off_z = off_hz // H
    off_h = off_hz % H
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    base = off_z * stride_qz + off_h * stride_qh
    q_ptrs = Q + base + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qk
    k_ptrs = K + off_z * stride_kz + off_h * stride_kh + offs_n[None, :] * stride_kn + offs_d[:, None] * stride_kk  # fmt: skip
    v_ptrs = V + off_z * stride_vz + off_h * stride_vh + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vk  # fmt: skip
    rows = offs_m < N_CTX
    q = tl.load(q_ptrs, mask=rows[:, None], other=0.0)
    q = (q * sm_scale * 1.44269504).to(q.dtype)
    m_i = tl.full([BLOCK_M], -1.0e6, dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    acc, l_i, m_i = _inner(acc, l_i, m_i, q, k_ptrs, v_ptrs, stride_kn, stride_vn, 0, N_CTX, N_CTX, offs_n, BLOCK_N)  # fmt: skip
    tl.store(L + off_hz * N_CTX + offs_m, m_i + tl.math.log2(l_i), mask=rows)
    o_ptrs = Out + off_z * stride_oz + off_h * stride_oh + offs_m[:, None] * stride_om + offs_d[None, :] * stride_on  # fmt: skip
    tl.store(o_ptrs, (acc / l_i[:, None]).to(tl.float16), mask=rows[:, None])


def attention(q, k, v, sm_scale):
    HEAD_DIM_Q, HEAD_DIM_K = q.shape[-1], k.shape[-1]
    assert HEAD_DIM_Q == HEAD_DIM_K and HEAD_DIM_K in {16, 32, 64, 128}
    o = torch.empty_like(q)
    grid = lambda args: (triton.cdiv(q.shape[2], args["BLOCK_M"]), q.shape[0] * q.shape[1], 1)
    M = torch.empty((q.shape[0], q.shape[1], q.shape[2]), device=q.device, dtype=torch.float32)
    _attn_fwd[grid](
        q, k, v, sm_scale, M, o,
        q.stride(0), q.stride(1), q.stride(2), q.stride(3),
        k.stride(0), k.stride(1), k.stride(2), k.stride(3),
        v.stride(0), v.stride(1), v.stride(2), v.stride(3),
        o.stride(0), o.stride(1), o.stride(2), o.stride(3),
        q.shape[0], q.shape[1], N_CTX=q.shape[2], HEAD_DIM=HEAD_DIM_K,
    )  # fmt: skip
    return o


def test():
    q = torch.randn((1, 2, 128, 64), dtype=torch.float16, device="cuda")
    attention(q, q, q, 0.5)
