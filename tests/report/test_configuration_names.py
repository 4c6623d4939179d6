"""Names of configurations: what is shown determines the configuration."""

import shlex

from hypothesis import given
from hypothesis import strategies as st
from samples import ROOT, SAXPY, STENCIL

from launchwise.report import wording
from launchwise.workloads.space import used
from launchwise.workloads.spec import load_spec

WORKLOADS = sorted(path.parent.name for path in ROOT.glob("kernels/*/spec.yaml"))
SPECS = {
    **{name: load_spec(ROOT / "kernels" / name) for name in WORKLOADS},
    **{folder.name: load_spec(folder) for folder in (SAXPY, STENCIL)},
}


def read_back(shown, spec):
    """Variant and tunables of a name, by nothing but the forms of the key."""
    variant, *words = shlex.split(shown)
    forms = [form.split() for form, _ in wording.configuration_key(spec)]
    (names,) = [form[1:] for form in forms if form[0] == variant]
    texts = {name.removesuffix("=…"): "0" for name in names if name.endswith("=…")}
    order = [name.removesuffix("=…") for name in names]
    for word in words:
        told, sign, value = word.partition("=")
        place = order.index(told if sign else next(one for one in order if "×" in one))
        # In the order of the key.
        told, order = order[place], order[place + 1 :]
        texts |= {told: value} if sign else zip(told.split("×"), word.split("×"), strict=True)
    for name, text in texts.items():
        (texts[name],) = [value for value in spec.values_of(name) if str(value) == text]
    return {"variant": variant, **texts}


@st.composite
def configurations(draw):
    """Any values of any variant, those that no constraint allows included."""
    spec = SPECS[draw(st.sampled_from(sorted(SPECS)))]
    variant = draw(st.sampled_from(list(spec.variants)))
    values = {name: draw(st.sampled_from(spec.values_of(name))) for name in spec.tunables}
    return spec, {"variant": variant, **values}


@given(configurations())
def test_a_name_can_be_read_back(made):
    spec, values = made
    assert read_back(wording.configuration(values, spec), spec) == used(values, spec)


def test_texts_with_spaces_can_be_read_back():
    known = SPECS["stencil"]
    texts = ["on the host", "it's m=4"]
    tz = known.tunables["tz"].model_copy(update={"values": texts, "neutral": texts[0]})
    spec = known.model_copy(update={"tunables": {**known.tunables, "tz": tz}})
    neutral = {name: tunable.neutral for name, tunable in spec.tunables.items()}
    for text in texts:
        values = {**neutral, "variant": "column", "tz": text}
        assert read_back(wording.configuration(values, spec), spec) == used(values, spec)
