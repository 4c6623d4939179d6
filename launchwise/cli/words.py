"""What a command's words name: settings, studies, GPUs and problems of the project in this folder.

A user names a GPU by its name in the settings, by its card, or by the name of its device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.literals import whole
from launchwise.base.names import assigned, named_values
from launchwise.base.typed import laid_over, read_yaml_mapping
from launchwise.experiment.discovery import problems_in
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import load_experiment, load_study, unknown_study
from launchwise.experiment.study import Study
from launchwise.gpus.datasheets import (
    CARDS_FILE,
    REFERENCE_PROFILE,
    Datasheet,
    described_profile,
    read_cards,
    reference_efficiency,
)
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.importing.device_names import cuda_names, parts_of_name, simplified
from launchwise.workloads.checks.fitting_sizes import nearest_value
from launchwise.workloads.spec import Spec

LOOKUP = Path("results", "lookup")  # Tables of answers of the products


def known_cards(experiment: Experiment) -> dict[str, Datasheet]:
    """Datasheets of the project that a command runs in, or launchwise's own outside of one."""
    own = experiment.root / CARDS_FILE
    return read_cards(own if own.is_file() else None)


def gpu_named(words: str, experiment: Experiment, command: str, key: str = "gpu") -> str:
    """GPU of the settings, or else card, that is meant. ``words``: its name; or the name of its
    device, such as ``NVIDIA A100-PCIE-40GB``, or whole words of it that fit one alone. Maker,
    product line, punctuation and case make no difference. ``command``, ``key``: what asks, for
    messages. Raises UserError when there is none, or the part fits several."""
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
    """Card, and name of the device, to the GPU of the settings that is all of it. Of several the
    one of the same name, else the first."""
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


def read_experiment(files: Sequence[Path], root: Path, study: str | None = None) -> Experiment:
    """The settings of the project in ``root``: ``files``, each overriding those before it.
    ``study``: what is asked about, if nothing else is: other studies are not read."""
    config: dict[str, Any] = {}
    for path in files:
        config = laid_over(config, read_yaml_mapping(path))
    if study is not None:
        return load_study(config, list(files), root, study)
    return load_experiment(config, list(files), root)


def study_named(name: str, experiment: Experiment, command: str) -> Study:
    """A study of the settings; UserError of the command where there is none of that name."""
    if name not in experiment.studies:
        raise UserError(command, "", unknown_study(name, experiment))
    return experiment.studies[name]


def find_profile(gpu: str, experiment: Experiment, command: str) -> GpuProfile:
    """Profile of a GPU of the settings (recorded, datasheet-only, or measured here), or of a card.
    Raises UserError when there is none."""
    root, gpus = experiment.root, experiment.settings.gpus
    entry = gpus.get(gpu)
    if entry is None or entry.source == "described":
        # Outside the project, its own cards count.
        own = (root / CARDS_FILE).is_file()
        cards = known_cards(experiment)
        card = (entry.card if entry else None) or gpu
        if card not in cards:
            raise UserError(command, "gpu", unknown("GPU or card", gpu, {*gpus, *cards}))
        efficiency = reference_efficiency(cards, root / REFERENCE_PROFILE if own else None)
        return described_profile(gpu, cards, efficiency, card, entry.host_gbs if entry else None)
    path = profile_file(gpu, experiment)
    if entry.source == "live" and not entry.extend and not path.is_file():
        message = f"is live and has no profile yet: run snakemake -c1 describe_{gpu} on its machine"
        raise UserError(command, gpu, message)
    return read_profile(path, gpu)


def sweep_file(gpu: str, workload: str, experiment: Experiment) -> Path:
    """Sweep on a GPU, which may be missing: what was measured here, else what is recorded."""
    entry, name = experiment.settings.gpus[gpu], f"{workload}.parquet"
    measured = experiment.root / "results" / "sweeps" / gpu / name
    if entry.source == "recorded" or (entry.extend and not measured.is_file()):
        return experiment.root / experiment.recorded_in(gpu) / name
    return measured


def block_of(
    spec: Spec,
    words: Sequence[str],
    command: str = "tune",
    measured: Sequence[Mapping[str, Any]] = (),
) -> dict[str, list[Any]]:
    """Problems from words such as ``n=512,1024`` of a command. Parameters without a word have their
    only value, if they have but one. Raises UserError when a word is none of these, or a parameter
    has no value; it suggests one of the ``measured`` problems, where there are any."""
    given: dict[str, list[Any]] = {}
    for name, values in named_values(words, command).items():
        word = f"{name}={values}"
        if name not in spec.problem:
            raise UserError(command, word, unknown("problem parameter", name, spec.problem))
        given[name] = [_value(spec, name, value, word, command) for value in values.split(",")]
    for name, parameter in spec.problem.items():
        if name not in given:
            if parameter.values is None or len(parameter.values) != 1:
                like = [
                    one for one in measured if all(one[key] in given[key] for key in given)
                ] or measured
                first = parameter.values[0] if parameter.values else parameter.maximum or 1024
                example = like[0][name] if like else nearest_value(spec, name, first) or first
                raise UserError(command, name, f"needs a value, such as {name}={example}")
            given[name] = list(parameter.values)
    block: dict[str, Any] = {name: given[name] for name in spec.problem}
    for problem in problems_in([block]):
        if said := spec.check_problem(problem):
            raise UserError(command, "problem", said)
    return block


def problems_of(
    spec: Spec, words: Sequence[str], command: str, measured: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Every problem that words such as ``n=512,1024`` name; see :func:`block_of`."""
    block: dict[str, Any] = dict(block_of(spec, words, command, measured))
    return problems_in([block])


def problem_of(
    spec: Spec, words: Sequence[str], command: str, measured: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """The one problem that words such as ``n=512`` name; see :func:`block_of`. Raises UserError
    also when they name several."""
    found = problems_of(spec, words, command, measured)
    if len(found) > 1:
        raise UserError(command, "problem", f"{len(found)} are named: give one value each")
    return found[0]


def named(configuration: Mapping[str, Any]) -> str:
    """``tiled: block_size_x=32, block_size_y=8``: every value with its name."""
    tunables = {name: value for name, value in configuration.items() if name != "variant"}
    return ": ".join(filter(None, (str(configuration["variant"]), assigned(tunables))))


def _value(spec: Spec, name: str, text: str, word: str, command: str) -> Any:
    parameter = spec.problem[name]
    value: Any = text
    if parameter.type == "integer":
        value = whole(text)
        if value is None:
            raise UserError(command, word, f"{text!r} is not an integer")
    if said := spec.check_value(name, value):
        raise UserError(command, word, said)
    return value
