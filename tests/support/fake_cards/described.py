"""The ``describe`` stage's process on a made-up card."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

from made_up import visible
from samples import profile

from launchwise.gpus.profile import Ceilings

job = json.loads(sys.stdin.read())
card = visible()
capability = divmod(int(card["arch"].removeprefix("sm_")), 10)
found = profile(
    job["name"],
    device_name=card["name"],
    card=job["card"],
    arch=card["arch"],
    compute_capability=capability,
    sms=job["slice_sms"] or card["sms"],
    whole_card_sms=card["sms"],
    driver=job["driver"],
    ceilings=Ceilings(copy_bandwidth_gbs=100.0 * card["rate"], launch_overhead_us=2.0),
)
print(json.dumps(found.model_dump(mode="json")), flush=True)
os._exit(0)
