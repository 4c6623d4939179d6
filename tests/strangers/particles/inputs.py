import numpy as np

FIELDS = [("x", "f4"), ("y", "f4"), ("vx", "f4"), ("vy", "f4"), ("mass", "f8"), ("id", "i4")]


def cloud(generator, count):
    made = np.zeros(count, np.dtype(FIELDS, align=True))
    for name in ("x", "y", "vx", "vy"):
        made[name] = generator.standard_normal(count)
    made["mass"] = generator.uniform(0.5, 2, count)
    made["id"] = np.arange(count)
    return {"particles": made}
