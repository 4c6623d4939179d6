"""Whether a spec is right: names, values at the corners of its space, sizes that fit, files."""
