from typing import Any


def expected(n: int, **given: Any) -> Any:
    image = given["in"].reshape(n, n)
    found = image * 0
    found[1:-1, 1:-1] = 0.2 * (
        image[1:-1, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:] + image[:-2, 1:-1] + image[2:, 1:-1]
    )
    return found
