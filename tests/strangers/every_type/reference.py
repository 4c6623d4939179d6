import numpy as np


def expected(both, given, table, scalar, dtype):
    def total(a, b):
        return a != b if dtype == "bool" else a + b

    # Integers wrap as they do on the device.
    with np.errstate(over="ignore"):
        return {"both": total(both, np.resize(table, both.size)), "out": total(given, scalar)}
