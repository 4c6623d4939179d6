"""Files that decide what is measured of the solver."""

from __future__ import annotations

from samples import ROOT

from launchwise.measuring.source_states import deciding_files


def test_host_code_that_the_workload_imports_decides_as_well() -> None:
    found = deciding_files(ROOT / "kernels" / "tridiagonal")
    host = "kernels/tridiagonal/host"
    # How streams are driven is half of what is measured; calling the solver from Python is not.
    wanted = (
        *("plan", "launches", "host_solution", "interface_solvers", "stage_times"),
        *("thomas", "cores", "compiling", "accuracy", "workload"),
    )
    own = {f"{host}/{name}.py" for name in (*wanted, "__init__")}
    python = {path.relative_to(ROOT).as_posix() for path in found if path.suffix == ".py"}
    assert python == {*own, "launchwise/workloads/inputs.py"}
    # The compiled part of the host's code decides, too.
    assert {ROOT / host / "thomas.c", ROOT / host / "partition.c"} <= set(found)
