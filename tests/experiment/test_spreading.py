"""Problems that a study draws: a design over its declared ranges."""

import math

from launchwise.experiment.study import Blind, StudyFile
from launchwise.experiment.study_checks import spread
from tests.support.spaces import made

SPEC = made({"threads": [32, 64]}, {"plain": (["threads"], [])}, ["m % 3 > 0"])
LARGEST = 1 << 24


def drawn(count, **more):
    blind = Blind(parameters={"m": {"minimum": 16, "maximum": LARGEST, "scale": "logarithmic"}})
    asked = {"blind": blind, "drawn": {"problems": count, **more}, "models": ["knn"]}
    split = {"kind": "problems", "title": "x", "train": {"m": [1]}, "test": {"m": [2]}}
    study = StudyFile(title="x", question="x", splits={"one": split}, **asked)
    return [problem["m"] for problem in spread(study, SPEC)]


def test_drawn_sizes_fill_their_range_as_any_first_part_of_them_does():
    sizes = drawn(60)
    assert len({*sizes}) == 60
    assert all(m % 3 and 16 <= m <= LARGEST for m in sizes)
    assert drawn(20) == sizes[:20] != drawn(20, seed=1)
    for part in (sizes[:20], sizes):
        octaves = [int(math.log2(m) - 4) // 5 for m in part]
        assert all(octaves.count(one) > len(part) / 6 for one in range(4)), octaves
    aligned = sum(m % 64 == 0 for m in sizes if m > 256)
    assert 8 <= aligned <= 24
    assert sum(m % 2 for m in sizes) >= 6
