def axpy(alpha, x, y):
    return float(alpha) * x + y
