"""One configuration on a device that is made up: what is timed, by which clock, and what counts."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from samples import STENCIL

from launchwise.base.robust import LEAST_ROUNDS
from launchwise.experiment.method import Method, Repeats
from launchwise.gpus.machine import Fastest
from launchwise.measuring import measure
from launchwise.measuring.measure import LayoutRun, OpenLayouts, ProblemContext, measure_energy
from launchwise.measuring.pairs import rounds
from launchwise.measuring.repeats import Repeated, Rest, timed_row
from launchwise.workloads.device import HostRun, LibraryRun, OutOfMemory
from launchwise.workloads.space import configurations
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import Finding

SPEC = load_spec(STENCIL)
PROBLEM = {"n": 20, "dtype": "float32", "order": 2}
BASELINE, *OTHERS = configurations(SPEC, PROBLEM)
METHOD = Method(repeats=Repeats(minimum=3, maximum=3, few=2), graph_below_us=20, energy_ms=200)
SHORT, LONG = Fastest(), Fastest(gbs=1e-3)
"""Cards on which some kernel of the problem may be short, and none is."""


CLOCK = SimpleNamespace(s=0.0)


@pytest.fixture(autouse=True)
def made_up_clock(monkeypatch):
    """A clock that goes on by what the device does."""
    time = SimpleNamespace(perf_counter=lambda: CLOCK.s, monotonic=lambda: CLOCK.s)
    monkeypatch.setattr(measure, "time", time)
    monkeypatch.setattr(rounds, "time", time)


def spend(ms):
    CLOCK.s += ms / 1e3


class Work:
    """Work of the device with the time of a launch, ms."""

    main = 0

    bytes = 1000
    """What it reads and writes."""

    def __init__(self, ms=1.0, first_ms=None, solves=1, restores=(), launches=1, found=(0.0, 1.0)):
        self.ms, self.first_ms, self.solves, self.restores = ms, first_ms or ms, solves, restores
        self.launches, self.finding, self.ran = ("k",) * launches, Finding(*found), 0
        self.held = 1  # Launches that take ``first_ms``


class Large(Work):
    """Work whose data L2 does not hold."""

    bytes = 1001


class OfHost(Work, HostRun):
    """Work that the host drives; after other work it touches its memory for the first time."""

    def __init__(self, machine):
        Work.__init__(self, 2.0)
        self.machine = machine

    def run(self):
        self.machine.synchronize()
        spend(self.ms if self.machine.last is self else 9 * self.ms)
        self.machine.last = self


class OfLibrary(Work, LibraryRun):
    """Work of a library, right once it is delivered; of its time, no event sees ``hidden_ms``."""

    version = "made up"

    def __init__(self, hidden_ms=0.0, found=(0.0, 1.0)):
        Work.__init__(self, found=(0.0, 1.0, "not delivered"))
        self.hidden_ms, self.delivered = hidden_ms, Finding(*found)

    def deliver(self):
        self.finding = self.delivered

    def queue(self, stream):
        spend(self.ms + self.hidden_ms)


class Machine:
    """A device with the session of its problem. ``work``: variant or library to its work."""

    l2_bytes = 1000

    def __init__(self, memory=10, **work):
        self.work, self.memory, self.last = work, memory, None
        self.queued_ms, self.said, self.asked, self.opened = 0.0, [], [], []
        self.workload = SimpleNamespace(
            spec=SPEC, layout=lambda one: one["variant"], open=self._open
        )
        self.device = self.session = self

    def _open(self, device, problem, layout, seed):
        if len(self.opened) == self.memory:
            raise OutOfMemory("full")
        self.opened.append(layout)
        return self

    def close(self):
        self.opened.pop()

    @property
    def working_set_bytes(self):
        return self.current.bytes

    def launch(self, configuration):
        self.current = self.work[configuration["variant"]]
        return self.current

    def peer(self, name):
        self.current = self.work[name]
        return self.current

    def poison(self):
        self.asked.append("poison")

    def check(self):
        return self.current.finding

    def stages(self, work):
        return {}

    def timed(self, work, repeats, flush):
        self.last = work
        self.asked.append("cold" if flush else "warm")
        times = [work.ms if work.ran + n >= work.held else work.first_ms for n in range(repeats)]
        work.ran += repeats
        spend(sum(times))
        return times

    def replayed(self, work, repeats, launches):
        self.asked.append("graph")
        self.sustain(work, repeats * launches)
        return Repeated([work.ms] * repeats, "graph", launches)

    def sustain(self, work, launches):
        work.ran += launches
        spend(launches * work.ms)

    def copy(self, kept, array):
        self.asked.append("copy")

    def synchronize(self):
        spend(self.queued_ms)
        self.queued_ms = 0.0

    def resources(self, launch):
        return {}

    def throttled(self):
        return False

    def context(self, fastest=LONG, **known):
        more = {"best_ms": math.inf, "mark_ms": math.inf, "attempt": 1, "seed": 0, **known}
        more |= {"say": self.said.append, "rest": Rest(wanted=False), "fastest": fastest}
        return ProblemContext(self, self.workload, METHOD, PROBLEM, **more)


def variant(name):
    """The first configuration of a variant."""
    return next(one for one in (BASELINE, *OTHERS) if one["variant"] == name)


FIRST, SECOND = (variant(name) for name in ("linear", "column"))
RESTORED = (SimpleNamespace(kept="kept", array="array"),)


@pytest.mark.parametrize(
    ("work", "fastest", "timer", "l2", "ms"),
    [
        (Work(), LONG, "events", "cold", 1.0),
        (Work(0.01), LONG, "events", "cold", 0.01),
        (Large(), LONG, "events", "warm", 1.0),
        (Work(), SHORT, "events", "warm", 1.0),
        (Work(0.01), SHORT, "graph", "warm", 0.01),
        (Work(0.15), SHORT, "graph", "warm", 0.15),
        (Large(0.15), LONG, "events", "warm", 0.15),
        (Large(0.05, launches=3), LONG, "graph", "warm", 0.05),
        (Work(0.01, restores=RESTORED), SHORT, "restored", "cold", 0.01),
        (Work(1.0, solves=4), LONG, "events", "cold", 0.25),
        (Work(0.04, solves=4), SHORT, "graph", "warm", 0.01),
        (OfHost(None), LONG, "host", "warm", 2.0),
    ],
)
def test_what_times_a_configuration_and_what_l2_holds(work, fastest, timer, l2, ms):
    work.ran = 0
    machine = work.machine = Machine(linear=work)
    row = LayoutRun(machine.context(fastest), "").measure(FIRST)
    assert (row["status"], row["timer"], row["l2"]) == ("ok", timer, l2)
    assert row["time_ms"] == pytest.approx(ms)
    # Short kernels are timed many at a time.
    assert row["launches_per_repeat"] == (math.ceil(0.2 / ms - 1e-9) if timer == "graph" else 1)
    assert ("cold" in machine.asked) == (timer == "events" and l2 == "cold")


def test_the_clock_of_the_host_begins_when_the_device_is_idle():
    machine = Machine()
    machine.queued_ms, machine.last = 50.0, OfHost(machine)
    assert measure.times_ms(machine, machine.last, 1) == [pytest.approx(2.0)]


def test_a_disturbed_repeat_changes_no_time():
    assert timed_row("ok", Repeated([1.0, 1.0, 9.0], "events", 1), "warm")["time_ms"] == 1.0


def test_two_launches_stop_a_configuration_and_none_the_baseline():
    assert FIRST == BASELINE
    machine = Machine(linear=Work(50.0), column=Work(50.0))
    run = LayoutRun(machine.context(best_ms=1.0, mark_ms=1.0), "")
    assert [run.measure(one)["status"] for one in (FIRST, SECOND)] == ["ok", "slow"]
    # One slow launch stops nothing.
    machine = Machine(column=Work(1.0, first_ms=50.0))
    run = LayoutRun(machine.context(best_ms=1.0, mark_ms=1.0), "")
    run.warm_up = lambda configuration: None
    assert run.measure(SECOND)["status"] == "ok"
    # A busy host delays launches in a row: of short kernels more are looked at.
    column = Work(0.01, first_ms=0.2)
    column.held = 4
    run = LayoutRun(Machine(column=column).context(best_ms=0.01, mark_ms=0.02), "")
    run.warm_up = lambda configuration: None
    assert run.measure(SECOND)["time_ms"] == 0.01
    # The baseline is known well, however far it is from the best.
    machine = Machine(linear=Work(5.0), column=Work(5.0))
    run = LayoutRun(machine.context(best_ms=1.0, mark_ms=9.0), "")
    assert [len(run.measure(one)["times_ms"]) for one in (FIRST, SECOND)] == [3, 2]


@pytest.mark.parametrize(
    ("found", "status"),
    [((0.0, 1.0), "ok"), ((9.0, 1.0, "off"), "wrong"), ((math.nan, 1.0), "wrong")],
)
def test_wrong_results_have_no_time_and_stop_nothing(found, status):
    machine = Machine(linear=Work(found=found))
    context = machine.context()
    row = LayoutRun(context, "").measure(FIRST)
    assert row["status"] == status
    assert ("time_ms" in row) == (status == "ok")
    assert math.isfinite(context.mark_ms) == (status == "ok")
    # Outputs are poisoned right before the launch whose results are checked.
    place = machine.asked.index("poison")
    assert machine.asked[place + 1] == "warm"


def test_a_first_launch_is_held_to_first_launches():
    machine = Machine(linear=Work(1.0, first_ms=9.0))
    context = machine.context()
    run = LayoutRun(context, "")
    run.warm_up = lambda configuration: None
    run.measure(FIRST)
    assert (context.best_ms, context.mark_ms) == (1.0, 9.0)
    # Of what is not verified no best is known.
    unverified = SPEC.variants["linear"].model_copy(update={"verified": False})
    changed = {"variants": {**SPEC.variants, "linear": unverified}}
    machine.workload.spec = SPEC.model_copy(update=changed)
    context = machine.context()
    assert LayoutRun(context, "").measure(FIRST)["status"] == "unverified"
    assert context.best_ms == context.mark_ms == math.inf


def test_layouts_are_closed_where_they_do_not_fit_together():
    machine = Machine(memory=1, linear=Work(), column=Work())
    layouts = OpenLayouts(machine.context())
    assert layouts.of(FIRST) is layouts.of(FIRST)
    assert layouts.of(SECOND) is not None
    assert machine.opened == ["column"]


@pytest.mark.parametrize(
    ("work", "sustained_ms"),
    [
        (Large(1.0), 1.0),
        (Large(1.0, solves=4), 0.25),
        (Large(0.013), 0.013),
        (Large(0.05, launches=3), 0.05),
        (Large(1.0, restores=RESTORED), None),
    ],
)
def test_energy_is_of_as_many_launches_as_ran(work, sustained_ms):
    machine = Machine(linear=work)
    measure_energy(machine.context(), machine, FIRST)
    if sustained_ms is None:
        assert not machine.said
        return
    (event,) = machine.said
    assert event["time_ms"] == pytest.approx(sustained_ms)
    took_ms = 1e3 * (event["ended"] - event["began"])
    assert took_ms == pytest.approx(event["launches"] * sustained_ms)
    assert 190 < took_ms < 250
    # A third as long before it, in which the card settles.
    settled = work.ran - 3 - took_ms / work.ms
    assert settled == pytest.approx(took_ms / work.ms / 3, rel=0.05)
    assert ("graph" in machine.asked) == (work.ms < 0.02 * len(work.launches))


def paired(machine, fastest=LONG, replays=True, more=()):
    """Events of a visit of two configurations and libraries."""
    listed = [FIRST, SECOND, *({"peer": name} for name in more)]
    places = range(len(listed))
    rounds.measure_pairs(machine.context(fastest), listed, 0.01, 1.0, [0, 1], replays, places)
    machine.entered = next(each for each in machine.said if each["event"] == "entered")["found"]
    return [each for each in machine.said if each["event"] == "round"]


@pytest.mark.parametrize(
    ("first", "second", "fastest", "replays", "ways"),
    [
        (Work(), Work(), LONG, True, [("events", "cold")] * 2),
        (Large(), Large(), LONG, True, [("events", "warm")] * 2),
        # Where L2 is emptied for one it is emptied for all.
        (Work(), Large(), LONG, True, [("events", "cold")] * 2),
        (Large(), Work(), LONG, True, [("events", "cold")] * 2),
        (Work(0.019), Work(), SHORT, True, [("graph", "warm")] * 2),
        (Work(0.021), Work(), SHORT, True, [("events", "warm")] * 2),
        (Work(0.01), Work(), SHORT, False, [("events", "warm")] * 2),
        (Work(restores=RESTORED), Work(), LONG, True, [("restored", "cold")] * 2),
        (Work(), OfHost(None), LONG, True, [("events", "cold"), ("host", "warm")]),
    ],
)
def test_what_is_compared_is_timed_alike(first, second, fastest, replays, ways):
    machine = first.machine = second.machine = Machine(linear=first, column=second)
    found = paired(machine, fastest, replays)
    assert [each["times_ms"] for each in found] == [pytest.approx([first.ms, second.ms])] * 6
    assert [(each["timer"], each["l2"]) for each in machine.entered] == ways
    # Verification apart, L2 is as it is told.
    assert ("cold" in machine.asked[-5:]) == (ways[0][1] == "cold")
    assert machine.asked.count("poison") == 2
    # Between launches, copies would count.
    places = [place for place, work in enumerate((first, second)) if not work.restores]
    assert [each["place"] for each in machine.said if each["event"] == "sustained"] == places


def test_every_round_has_an_order_of_its_own():
    machine = Machine(linear=Work(), column=Work(), one=OfLibrary(), other=OfLibrary())
    found = paired(machine, more=("one", "other"))
    orders = {tuple(np.argsort([began for began, _ in each["when"]])) for each in found}
    assert len(found) == LEAST_ROUNDS
    # Of 24 orders, drawn by a fixed seed.
    assert len(orders) > 4


def test_wrong_ones_and_libraries_that_nobody_sees_take_no_part():
    libraries = {"right": OfLibrary(), "hidden": OfLibrary(hidden_ms=20.0)}
    libraries["wrong"] = OfLibrary(found=(9.0, 1.0, "off"))
    libraries["restoring"] = type("Restoring", (OfLibrary,), {"restore": lambda self: None})()
    machine = Machine(linear=Work(), column=Work(found=(9.0, 1.0, "off")), **libraries)
    found = paired(machine, more=libraries)
    statuses = [each["status"] for each in machine.entered]
    assert statuses == ["ok", "wrong", "ok", "failed", "wrong", "ok"]
    assert "not work on the stream that is timed" in machine.entered[3]["reason"]
    assert {len(each["times_ms"]) for each in found} == {3}
    # What overwrites its input does not run back to back.
    assert [each["place"] for each in machine.said if each["event"] == "sustained"] == [0, 1]
