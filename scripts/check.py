"""Check that this machine can measure on one live GPU, before other jobs start."""

import socket
from typing import TYPE_CHECKING

from launchwise.base.errors import UserError
from launchwise.base.provenance import now
from launchwise.base.scripting import running
from launchwise.base.storage import write_json
from launchwise.measuring.ready import check_machine

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(name: str, arch: str, device: str | None, output: str) -> None:
    """Write the machine's driver, toolkit and libraries; UserError with every missing item."""
    host = socket.gethostname()
    facts, missing = check_machine(arch, device)
    if missing:
        message = f"{host} cannot measure on this GPU: {'; '.join(missing)}"
        raise UserError("config.yaml", f"gpus.{name}", message)
    write_json(output, {"gpu": name, "host": host, "checked_at": now(), **facts})


if __name__ == "__main__":
    with running(snakemake):
        main(
            snakemake.wildcards.gpu,
            snakemake.params.arch,
            snakemake.params.device,
            snakemake.output[0],
        )
