"""Which rows an expert has: as uneven as routers leave them."""

import numpy as np


def routing(generator: np.random.Generator, rows: int, experts: int) -> dict[str, np.ndarray]:
    """First row of each expert, int32 of (experts + 1), the last one the number of rows."""
    share = generator.dirichlet(np.full(experts, 2.0))
    counts = generator.multinomial(rows, share)
    return {"first": np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)}
