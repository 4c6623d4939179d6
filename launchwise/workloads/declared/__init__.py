"""What a spec with ``arguments`` needs no Python for: content, expected outputs, launches."""
