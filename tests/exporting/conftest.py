"""A product of the tests' own workload, and the table of its answers."""

import pandas as pd
import pytest
from exported import GPUS, SIZES, UNKNOWN
from stencil import slice_of_card, sweep
from studies import entry, fit_product

from launchwise.exporting.building import answer_table
from launchwise.learning.features import Domain
from launchwise.learning.final import read_final


@pytest.fixture(scope="module")
def domain(stencil_spec):
    return Domain(stencil_spec, {gpu: slice_of_card(gpu) for gpu in (*GPUS, UNKNOWN)})


@pytest.fixture(scope="module")
def sweeps(stencil_spec):
    """What the product learns from."""
    types = ("float32", "float64")
    return {
        gpu: pd.concat(
            [sweep(stencil_spec, SIZES, gpu, dtype, order=2) for dtype in types], ignore_index=True
        )
        for gpu in GPUS
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory, domain, sweeps):
    """The product of a study of a few sizes."""
    found = tmp_path_factory.mktemp("final") / "tiles"
    chosen = entry("committee", members="knn, lightgbm, nearest_size")
    fit_product(found, domain, sweeps, chosen)
    return found


@pytest.fixture(scope="module")
def final(folder, domain):
    return read_final(folder, domain)


@pytest.fixture(scope="module")
def table(final):
    return answer_table(final, "tiles", [UNKNOWN])
