"""Which made-up cards this machine has.

The variable FAKE_CARDS names a JSON file: node -> list of cards, each with index, uuid, name, arch,
sms, rate (how fast it is), pause_s (what a timing takes in truth) and, for a card on which some
launches became slower, slowed (shape of a block such as 32x4x1 to a factor). FAKE_DRIVER is the
version of the driver. On a node of Slurm its own cards count, elsewhere those of all nodes.
"""

import json
import os
from pathlib import Path
from typing import Any

DRIVER = os.environ.get("FAKE_DRIVER", "580.0")


def present() -> list[dict[str, Any]]:
    """Cards of this machine."""
    nodes: dict[str, list[dict[str, Any]]] = json.loads(Path(os.environ["FAKE_CARDS"]).read_text())
    here = os.environ.get("SLURMD_NODENAME")
    return nodes[here] if here in nodes else [card for cards in nodes.values() for card in cards]


def visible() -> dict[str, Any]:
    """The card that CUDA_VISIBLE_DEVICES names by its UUID."""
    return next(card for card in present() if card["uuid"] == os.environ["CUDA_VISIBLE_DEVICES"])
