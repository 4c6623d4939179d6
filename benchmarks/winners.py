"""What a search on a new card gains from the winners of other cards alone, beside their sweeps.

    python benchmarks/winners.py benchmarks/results/winners.json

In simulation on the public sweeps, each card in turn: a search that knows nothing (``alone``), the
fastest configuration of each other card of its vendor without its time (``winners``), or their
whole sweeps (``sweeps``); ``unweighed``: these, but all cards count the same. ``best_of`` is the
share of the best speed after so many evaluations; ``gain_of_sweeps`` what is gained over ``alone``
by what sweeps gain. No GPU is needed.
"""

from __future__ import annotations

from itertools import islice
from statistics import fmean

import numpy as np
from harness import searches
from harness.command_line import arguments, write_result

KNOWN = ("alone", "winners", "sweeps", "unweighed")
AFTER = (1, 5, 20)


def shares(workload: str, gpu: str, known: str) -> dict[str, float]:
    """Shares of the best speed on a card."""
    _, table = searches.public(workload)
    others = [] if known == "alone" else searches.others_of(gpu, table)
    columns = [table[each] for each in others]
    search = searches.search_of(
        table.index, columns, None if known == "unweighed" else gpu, known == "winners"
    )
    own = table[gpu].to_numpy(dtype=float)
    times = list(islice(searches.measured(search, own), max(AFTER)))
    return {f"best_of_{k}": searches.share(times[:k], float(np.min(own))) for k in AFTER}


def main() -> None:
    """Search, sum up, write."""
    asked = arguments(__doc__).parse_args()
    workloads = searches.WORKLOADS[-1:] if asked.smallest else searches.WORKLOADS
    cards = [(each, gpu) for each in workloads for gpu in searches.public(each)[0]]
    found = {known: {gpu: shares(each, gpu, known) for each, gpu in cards} for known in KNOWN}
    means = {
        known: {
            name: fmean(each[name] for each in by_card.values()) for name in by_card[cards[0][1]]
        }
        for known, by_card in found.items()
    }
    gains = {
        name: (means["winners"][name] - alone) / (means["sweeps"][name] - alone)
        for name, alone in means["alone"].items()
    }
    result = {"cards": len(cards), "means": means, "gain_of_sweeps": gains, "by_card": found}
    write_result(asked.output, result)


if __name__ == "__main__":
    main()
