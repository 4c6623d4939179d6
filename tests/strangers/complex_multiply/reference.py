def product(f, g, scale):
    return f * g.conj() * scale
