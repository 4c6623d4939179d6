"""What the kernel must compute, in NumPy."""


def expected(next, now, rates):
    """A step of diffusion; the halo keeps what was in it."""
    beside = now[1:-1, :-2] + now[1:-1, 2:] + now[:-2, 1:-1] + now[2:, 1:-1]
    after = next.copy()
    after[1:-1, 1:-1] = rates["keep"] * now[1:-1, 1:-1] + rates["take"] * beside
    return after
