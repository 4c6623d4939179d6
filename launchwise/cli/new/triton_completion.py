"""Sizes of tensors that the host code of a file does not say."""

from __future__ import annotations

from collections.abc import Callable

from launchwise.cli.new.triton_tensors import Tensors


def complete(
    tensors: Tensors, symbol: Callable[[str], str], make_sizes: Callable[[], None]
) -> dict[str, str]:
    """Give sizes that the host does not say: those of a tensor of the same rank, else names.

    Parameters
    ----------
    symbol
        Problem parameter for a name of the host.
    make_sizes
        Sets sizes of tensors that the host makes, as far as names are known.

    Returns
    -------
    Tensor to a question.
    """
    questions = {}
    for tensor in tensors.values():
        target = tensors.get(tensor.like)
        if target is None or target.like or target.is_whole:
            continue
        if not any(target.shape()) and len(target.shape()) <= len(tensor.shape()):
            target.length, target.sizes = tensor.length, dict(tensor.sizes)
            target.rank, target.is_whole = tensor.rank, tensor.is_whole
    whole = [one for one in tensors.values() if one.sizes and None not in one.shape()]
    for name, tensor in sorted(tensors.items(), key=lambda one: bool(one[1].made_of)):
        shape = tensor.shape()
        if tensor.like or None not in shape:
            continue
        alike = [one for one in whole if len(one.shape()) == len(shape)]
        fits = (one for one in alike if _agree(one.shape(), shape))
        other = next(fits, next(iter(alike), None))
        for place, text in enumerate(shape):
            if text is None:
                own = other.shape()[place] if other is not None else None
                usual = ("rows", "columns")[place] if len(shape) == 2 else ""
                tensor.sizes[place] = own or symbol(usual or f"{name.lower()}_{place}")
        tensor.sizes = {place % len(shape): one for place, one in tensor.sizes.items()}
        make_sizes()
        questions[name] = f"shape: the file does not say all sizes of {name}"
        whole.append(tensor)
    return questions


def _agree(whole: list[str | None], shape: list[str | None]) -> bool:
    """Whether a whole shape has the sizes that are known of another."""
    return all(own in (None, one) for one, own in zip(whole, shape, strict=True))
