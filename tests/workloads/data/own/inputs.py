def make(generator, n, problem):
    assert problem["n"] == n
    values = generator.uniform(size=n - 1)
    return {"values": values, "entries": values.size}
