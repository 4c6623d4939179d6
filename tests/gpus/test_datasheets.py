"""GPUs known from datasheets: the table of their figures, and profiles made of it."""

import math

import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.gpus.datasheets import (
    CARDS_FILE,
    FIGURES,
    FLOP_FIGURES,
    REFERENCE_PROFILE,
    TENSOR_FIGURES,
    Datasheet,
    Efficiency,
    described_profile,
    read_cards,
    reference_efficiency,
    slowest_bandwidths,
)
from launchwise.gpus.machine import Machine, tensor_share
from launchwise.gpus.profile import (
    CORES_PER_SM,
    MEASURED_ONLY,
    GpuProfile,
    read_profile,
    write_profile,
)

CASES = read_yaml(ROOT / "tests/gpus/data/tables.yaml")

CARDS = read_cards(ROOT / CARDS_FILE)
COMPLETE = sorted(name for name, card in CARDS.items() if not card.missing)
OF_NVIDIA = [name for name in COMPLETE if not CARDS[name].is_amd]
OF_AMD = [name for name in COMPLETE if CARDS[name].is_amd]
RECORDED = ROOT / REFERENCE_PROFILE
EFFICIENCY = reference_efficiency(CARDS, RECORDED)

FLOAT64_PER_SM = {
    **{(3, 5): 64, (5, 2): 4, (7, 0): 32, (7, 5): 2, (8, 0): 32, (8, 6): 2, (8, 9): 2},
    **{(9, 0): 64, (10, 0): 64},
}
"""FP64 lanes of an SM (CUDA C++ Programming Guide, throughput table)."""

TENSOR_FLOP_PER_CYCLE = {(7, 0): 1024, (7, 5): 1024, (8, 0): 2048, (8, 6): 1024, (8, 9): 1024}
"""Dense float16 of an SM, two a multiply-add, where float32 sums cost nothing (whitepapers)."""

HALVED = ("rtx2080ti", "rtx2080super", "rtx3060_laptop", "rtx3090", "rtx4070")
HALVED += ("rtx4080", "rtx4090")
"""GeForce cards: half of it with float32 sums."""


@pytest.mark.parametrize("name", OF_NVIDIA)
def test_peaks_follow_from_cores_and_clock(name):
    card = CARDS[name]
    figures, clock_ghz = card.figures, card.figures["boost_clock_mhz"] / 1e3
    assert figures["float32_gflops"] == pytest.approx(2 * card.cores * clock_ghz, rel=0.03)
    lanes = figures["sms"] * FLOAT64_PER_SM[card.compute_capability]
    # With all of its FP64 units at work a TITAN Black keeps to its base clock.
    float64_ghz = 0.889 if name == "titan_black" else clock_ghz
    assert figures["float64_gflops"] == pytest.approx(2 * lanes * float64_ghz, rel=0.03)


@pytest.mark.parametrize("name", OF_AMD)
def test_a_card_of_amd_has_a_target_and_a_wavefront_instead_of_a_capability(name):
    card = CARDS[name]
    found = described_profile(name, CARDS, EFFICIENCY)
    assert (found.is_amd, found.capability_text) == (True, card.arch)
    assert card.figures["wavefront_threads"] in (32, 64)
    # RDNA 3 starts two multiply-adds at once.
    at_once = 4 if card.arch == "gfx1100" else 2
    peak = at_once * card.cores * card.figures["boost_clock_mhz"] / 1e3
    assert card.figures["float32_gflops"] == pytest.approx(peak, rel=0.03)
    lacking = {key: value for key, value in card.figures.items() if key != "wavefront_threads"}
    assert Datasheet(name=name, figures=lacking).missing == ["wavefront_threads"]


@pytest.mark.parametrize("name", OF_NVIDIA)
def test_rates_of_tensor_cores_follow_from_sms_and_clock(name):
    card = CARDS[name]
    given = {key: card.figures[key] for key in TENSOR_FIGURES if key in card.figures}
    capability = card.compute_capability
    assert ("float16_gflops" in given) == (capability >= (7, 0))
    assert ("tf32_gflops" in given) == ("bfloat16_gflops" in given) == (capability >= (8, 0))
    if "tf32_gflops" in given:
        assert given["bfloat16_gflops"] == given["float16_gflops"]
        assert given["tf32_gflops"] == pytest.approx(given["float16_gflops"] / 2, rel=0.03)
    # Before Hopper they reach the share of the literature.
    ceilings = described_profile(name, CARDS, EFFICIENCY).ceilings
    for key, figure in given.items():
        share = 0.95 if capability < (9, 0) else EFFICIENCY.rates[key]
        assert getattr(ceilings, key) == pytest.approx(share * figure)
    if capability in TENSOR_FLOP_PER_CYCLE:
        rate = TENSOR_FLOP_PER_CYCLE[capability] / (2 if name in HALVED else 1)
        peak = rate * card.figures["sms"] * card.figures["boost_clock_mhz"] / 1e3
        # Makers print the rates of Volta for lower clocks than its highest.
        assert given["float16_gflops"] == pytest.approx(
            peak, rel=0.1 if name == "titan_v" else 0.03
        )


@pytest.mark.parametrize("name", OF_NVIDIA)
def test_limits_of_an_sm_belong_to_the_compute_capability(name):
    limits = ("shared_per_sm_bytes", "shared_per_block_bytes", "registers_per_sm")
    limits += ("max_threads_per_sm", "max_threads_per_block")
    card = CARDS[name]
    for other in map(CARDS.__getitem__, OF_NVIDIA):
        if other.compute_capability == card.compute_capability:
            assert [other.figures[key] for key in limits] == [card.figures[key] for key in limits]
    assert card.figures["shared_per_block_bytes"] <= card.figures["shared_per_sm_bytes"]


@pytest.mark.parametrize("name", COMPLETE)
def test_a_described_card_is_a_gpu_like_any_other(name, tmp_path):
    found = described_profile("mine", CARDS, EFFICIENCY, name)
    write_profile(tmp_path / "mine.json", found)
    assert read_profile(tmp_path / "mine.json", "mine") == found
    assert found.source == "described"
    assert found.card_model == name
    assert not found.is_slice
    assert all(math.isfinite(value) and value > 0 for value in found.features().values())
    assert found.ceilings.copy_bandwidth_gbs < found.memory_bandwidth_gbs
    assert found.ceilings.float32_gflops < CARDS[name].figures["float32_gflops"]
    for key, value in MEASURED_ONLY.items():
        assert getattr(found, key) == value


def test_what_nobody_measured_is_left_out_of_the_ceilings():
    ceilings = described_profile("a100", CARDS, EFFICIENCY).ceilings.model_dump(exclude_none=True)
    told = {"copy_bandwidth_gbs", "launch_overhead_us", *FLOP_FIGURES}
    assert set(ceilings) == {*told, *TENSOR_FIGURES}
    assert ceilings["tf32_gflops"] < CARDS["a100"].figures["tf32_gflops"]
    # No card gets cores that it does not have.
    plain = described_profile("titan_black", CARDS, EFFICIENCY).ceilings.model_dump(
        exclude_none=True
    )
    assert set(plain) == told


def test_only_a_described_card_may_lack_what_a_measurement_tells():
    known = described_profile("a100", CARDS, EFFICIENCY).model_dump(
        exclude={"source", *MEASURED_ONLY}
    )
    assert GpuProfile.described(**known) == described_profile("a100", CARDS, EFFICIENCY)
    with pytest.raises(ValueError, match="driver"):
        GpuProfile(**known)
    assert read_profile(RECORDED).source == "measured"


def test_another_reference_profile_changes_the_described_ceilings(tmp_path):
    measured = read_profile(RECORDED)
    changed = {"copy_bandwidth_gbs": 2400.0, "float64_gflops": 16727.04, "tf32_gflops": 247250.0}
    ceilings = measured.ceilings.model_copy(update={**changed, "launch_overhead_us": 3.0})
    write_profile(tmp_path / "p.json", measured.model_copy(update={"ceilings": ceilings}))
    half = reference_efficiency(CARDS, tmp_path / "p.json")
    # Half of the datasheet's 4800 GB/s, 33 454.08 and 494 500 GFLOP/s.
    found = described_profile("h100", CARDS, half).ceilings
    figures = CARDS["h100"].figures
    assert found.copy_bandwidth_gbs == pytest.approx(figures["memory_bandwidth_gbs"] / 2)
    assert found.float64_gflops == pytest.approx(figures["float64_gflops"] / 2)
    assert found.tf32_gflops == pytest.approx(figures["tf32_gflops"] / 2)
    assert found.launch_overhead_us == 3.0
    before = described_profile("h100", CARDS, EFFICIENCY).ceilings
    for key in ("float32_gflops", "float16_gflops", "bfloat16_gflops"):
        assert getattr(found, key) == getattr(before, key)


def test_a_measured_gpu_without_tensor_ceilings_has_those_of_the_literature():
    assert (tensor_share((8, 9)), tensor_share((9, 0))) == (0.95, 0.62)
    measured = read_profile(RECORDED)
    lacking = dict.fromkeys(TENSOR_FIGURES)
    ceilings = measured.ceilings.model_copy(update=lacking)
    bare = Machine.of(measured.model_copy(update={"ceilings": ceilings}))
    # 132 SMs x 4096 FLOP per cycle at 1.98 GHz.
    assert bare.float16 == pytest.approx(0.62 * 132 * 4096 * 1.98)
    assert Machine.of(measured).float16 == measured.ceilings.float16_gflops


def test_a_reference_that_lacks_a_rate_is_refused():
    measured, card = read_profile(RECORDED), CARDS["h200"]
    ceilings = measured.ceilings.model_copy(update={"tf32_gflops": None})
    bare = measured.model_copy(update={"ceilings": ceilings})
    with pytest.raises(UserError, match=r"h200: ceilings: lacks tf32_gflops"):
        Efficiency.of(bare, card)
    figures = {key: value for key, value in card.figures.items() if key != "float64_gflops"}
    with pytest.raises(UserError, match=r"h200: lacks float64_gflops"):
        Efficiency.of(measured, card.model_copy(update={"figures": figures}))


def test_the_reference_card_is_described_as_it_was_measured():
    measured, described = read_profile(RECORDED), described_profile("h200", CARDS, EFFICIENCY)
    ceilings = described.ceilings.model_dump(exclude_none=True)
    assert ceilings == pytest.approx({key: getattr(measured.ceilings, key) for key in ceilings})
    assert set(ceilings) >= {*FLOP_FIGURES, *TENSOR_FIGURES}
    for key, value in measured.model_dump(exclude={"ceilings", "device_name", "source"}).items():
        if key in MEASURED_ONLY:
            continue
        known = getattr(described, key)
        assert known == (pytest.approx(value, rel=0.01) if isinstance(value, float) else value), key


def test_the_slowest_card_of_an_architecture_may_have_few_figures(tmp_path):
    path = table(
        tmp_path,
        *("fast,compute_capability,9.0,1,a box", "fast,memory_bandwidth_gbs,3350,GB/s,a box"),
        *("slow,compute_capability,9.0,1,a box", "slow,memory_bandwidth_gbs,2000,GB/s,a box"),
        *("new,compute_capability,12.0,1,a box", "new,memory_bandwidth_gbs,448,GB/s,a box"),
        # Nothing is known of their bandwidth or architecture.
        *("bare,compute_capability,8.0,1,a box", "odd,memory_bandwidth_gbs,1,GB/s,a box"),
    )
    cards = read_cards(path)
    assert cards["slow"].missing
    assert slowest_bandwidths(cards) == {"sm_90": 2000, "sm_120": 448}


HEADER = "card,figure,value,unit,source"


def table(folder, *rows):
    """A table with these rows."""
    path = folder / "cards.csv"
    path.write_text("\n".join([HEADER, *rows, ""]), encoding="utf-8")
    return path


COLUMNS = "must have the columns card, figure, value, unit, source (got "
FILES = {
    what: (f"{HEADER}\nx,sms,8,1,a box\n{row}\n", said)
    for what, (row, said) in CASES["cards"].items()
}
FILES |= {
    "no file": (None, "cannot be read: No such file or directory"),
    "no header": ("", f"{COLUMNS}none)"),
    "too few columns": ("card,figure,value\n", f"{COLUMNS}card"),
    "an open quote": (f'{HEADER}\nx,sms,8,1,"a box\n', "line 2: is not CSV: "),
}


@pytest.mark.parametrize("what", FILES)
def test_a_mistake_in_the_table_is_one_line_with_card_and_figure(what, tmp_path):
    content, said = FILES[what]
    path = tmp_path / "cards.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError) as caught:
        read_cards(path)
    assert str(caught.value).startswith(f"{path}: {said}")


@pytest.mark.parametrize("figure", FIGURES)
def test_a_card_that_lacks_a_figure_is_refused_and_the_others_are_not(figure, tmp_path):
    rows = (ROOT / CARDS_FILE).read_text(encoding="utf-8").splitlines()[1:]
    path = table(tmp_path, *(row for row in rows if not row.startswith(f"a100,{figure},")))
    cards = read_cards(path)
    with pytest.raises(UserError) as caught:
        described_profile("a100", cards, EFFICIENCY)
    assert str(caught.value) == f"{path}: a100: lacks {figure}"
    assert described_profile("h100", cards, EFFICIENCY) == described_profile(
        "h100", CARDS, EFFICIENCY
    )


def test_a_card_that_is_not_in_the_table_is_one_line_with_those_that_are(tmp_path):
    cards = read_cards(table(tmp_path, "x1,sms,8,1,a box", "x2,sms,8,1,a box"))
    with pytest.raises(UserError) as caught:
        described_profile("x", cards, EFFICIENCY)
    said = "unknown card 'x', did you mean 'x2'? (allowed: x1, x2)"
    assert str(caught.value) == f"{tmp_path / 'cards.csv'}: {said}"


def test_a_compute_capability_without_known_cores_is_refused():
    figures = {**CARDS["a100"].figures, "compute_capability": 9.9}
    assert (9, 9) not in CORES_PER_SM
    with pytest.raises(UserError, match=r"new: has compute capability 9\.9, whose cores"):
        described_profile("new", {"new": Datasheet(name="new", figures=figures)}, EFFICIENCY)


def test_ceilings_that_nothing_measured_are_below_the_datasheet():
    known = read_profile(ROOT / REFERENCE_PROFILE).model_dump(exclude={"source", "ceilings"})
    made = GpuProfile.of_attributes(**known)
    assert made.ceilings.copy_bandwidth_gbs == pytest.approx(0.9 * known["memory_bandwidth_gbs"])
