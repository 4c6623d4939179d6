def gemm(A, B, C, alpha, beta):
    return float(alpha) * A @ B + float(beta) * C
