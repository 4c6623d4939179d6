"""Basic modules: errors, files, typed YAML, expressions."""
