# mypy: disable-error-code="no-untyped-def"
"""Products of experts in Triton: a tile of the result per program, its epilogue with it."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["experts"])
def expert_product(
    out,
    x,
    weights,
    bias,
    scale,
    first,
    experts,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EVEN_K: tl.constexpr,
    MOST_EXPERTS: tl.constexpr,
):
    # Which tile is this? Experts have tiles of rows of their own, and only they know how many.
    expert = tl.arange(0, MOST_EXPERTS)
    begin = tl.load(first + expert, mask=expert < experts, other=0)
    end = tl.load(first + expert + 1, mask=expert < experts, other=0)
    tiles = (end - begin + BLOCK_M - 1) // BLOCK_M
    passed = tl.cumsum(tiles, 0)
    down = tl.sum(tiles, 0)
    across = tl.cdiv(n, BLOCK_N)
    program = tl.program_id(0)
    if program < down * across:
        # GROUP_M tiles below each other run before the next column: their weights stay in L2.
        group = program // (GROUP_M * across)
        height = tl.minimum(down - group * GROUP_M, GROUP_M)
        place = program % (GROUP_M * across)
        tile = group * GROUP_M + place % height
        columns = (place // height) * BLOCK_N + tl.arange(0, BLOCK_N)
        mine = tl.sum((passed <= tile).to(tl.int32), 0)
        is_mine = expert == mine
        before = tl.sum(tl.where(is_mine, passed - tiles, 0), 0)
        top = tl.sum(tl.where(is_mine, begin, 0), 0)
        bottom = tl.sum(tl.where(is_mine, end, 0), 0)
        rows = top + (tile - before) * BLOCK_M + tl.arange(0, BLOCK_M)

        inner = tl.arange(0, BLOCK_K)
        # What lies outside is read at the edge, and not stored.
        safe_rows = tl.minimum(rows, bottom - 1).to(tl.int64)
        safe_columns = tl.minimum(columns, n - 1)
        left = x + safe_rows[:, None] * k + inner[None, :]
        right = weights + mine.to(tl.int64) * n * k
        right += safe_columns[None, :] * k + inner[:, None]
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            if EVEN_K:
                a = tl.load(left)
                b = tl.load(right)
            else:
                a = tl.load(left, mask=inner[None, :] < k - start, other=0.0)
                b = tl.load(right, mask=inner[:, None] < k - start, other=0.0)
            total = tl.dot(a, b, total)
            left += BLOCK_K
            right += BLOCK_K

        total += tl.load(bias + mine * n + safe_columns).to(tl.float32)[None, :]
        total = total / (1 + tl.exp(-total))
        total *= tl.load(scale + safe_rows)[:, None]
        inside = (rows < bottom)[:, None] & (columns < n)[None, :]
        places = out + rows.to(tl.int64)[:, None] * n + columns[None, :]
        tl.store(places, total.to(out.dtype.element_ty), mask=inside)
