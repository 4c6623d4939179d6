def expected(x, y, **others):
    return y + 2 * x
