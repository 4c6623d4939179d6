"""GPUs by the words of a user: a name of the settings, a card, or the name of a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from launchwise.base.errors import UserError, unknown
from launchwise.experiment.experiment import Experiment
from launchwise.gpus.datasheets import CARDS_FILE, Datasheet, read_cards
from launchwise.gpus.profile import read_profile
from launchwise.importing.cards import cuda_names, parts_of_name, simplified


def known_cards(experiment: Experiment) -> dict[str, Datasheet]:
    """Datasheets of the project that a command runs in, or launchwise's own outside of one."""
    own = experiment.root / CARDS_FILE
    return read_cards(own if own.is_file() else None)


def gpu_named(words: str, experiment: Experiment, command: str, key: str = "gpu") -> str:
    """GPU of the settings, or else card, that is meant.

    Parameters
    ----------
    words
        Its name; or the name of its device, such as ``NVIDIA A100-PCIE-40GB``, or whole words of it
        that fit one alone. Maker, product line, punctuation and case make no difference.
    command, key
        What asks, for messages.

    Raises
    ------
    UserError
        When there is none, or the part fits several.
    """
    gpus, cards = experiment.settings.gpus, known_cards(experiment)
    if words in gpus or words in cards:
        return words
    devices = _devices(experiment, cards)
    wanted, plain = parts_of_name(words), simplified(words)
    exact = {target for device, target in devices.items() if simplified(device) == plain}
    partly = {target for device, target in devices.items() if _holds(device, wanted)}
    fitting = sorted(exact or partly)
    if len(fitting) > 1:
        raise UserError(command, key, f"{words!r} fits {', '.join(fitting)}: name one")
    if not fitting:
        raise UserError(command, key, unknown("GPU or card", words, {*gpus, *cards}))
    return fitting[0]


def _holds(device: str, wanted: Sequence[str]) -> bool:
    """Whether a device's name has these words, one after the other."""
    words, count = parts_of_name(device), len(wanted)
    return any(words[start : start + count] == wanted for start in range(len(words))) and count > 0


def _devices(experiment: Experiment, cards: Mapping[str, Datasheet]) -> dict[str, str]:
    """Name of a device to the GPU of the settings that it is, or else its card."""
    whole = _whole_gpus(experiment)
    devices = {card: whole.get(card, card) for card in cards}
    for card, names in cuda_names().items():
        if card in cards:
            devices |= {name: whole.get(card, card) for name in names}
    return devices | whole


def _whole_gpus(experiment: Experiment) -> dict[str, str]:
    """Card, and name of the device, to the GPU of the settings that is all of it.

    Of several the one of the same name, else the first.
    """
    found: dict[str, str] = {}
    gpus = experiment.settings.gpus
    for gpu, entry in gpus.items():
        names = [entry.card or gpu]
        if entry.source != "described":
            path = profile_file(gpu, experiment)
            if path.is_file():
                profile = read_profile(path)
                names = [] if profile.is_slice else [gpu, profile.device_name]
        for name in names:
            found.setdefault(name, name if name in gpus else gpu)
    return found


def profile_file(gpu: str, experiment: Experiment) -> Path:
    """File with the profile of a GPU of the settings; one that extends rows keeps theirs."""
    entry = experiment.settings.gpus[gpu]
    if entry.source == "recorded" or entry.extend:
        return experiment.root / experiment.recorded_in(gpu) / "profile.json"
    return experiment.root / "results" / "gpus" / f"{gpu}.json"
