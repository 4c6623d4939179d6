"""Check that this machine can measure on one live GPU, before other jobs start."""

import socket
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.places import now
from launchwise.base.scripting import run
from launchwise.base.storage import write_json
from launchwise.measuring.cards import check_machine


def main(gpu: str, arch: str, device: str | None, output: Path) -> None:
    """Write the machine's driver, toolkit and libraries; UserError with every missing item."""
    host = socket.gethostname()
    facts, missing = check_machine(arch, device)
    if missing:
        message = f"{host} cannot measure on this GPU: {'; '.join(missing)}"
        raise UserError("config.yaml", f"gpus.{gpu}", message)
    write_json(output, {"gpu": gpu, "host": host, "checked_at": now(), **facts})


if __name__ == "__main__":
    run(main)
