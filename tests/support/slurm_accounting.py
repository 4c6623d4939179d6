"""Slurm's accounting on one machine: a database of its own, slurmdbd, accounts and QOS.

Needs root and Debian's packages mariadb-server and slurmdbd.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

PROGRAMS = ("mariadb-install-db", "mariadbd", "slurmdbd", "sacctmgr")
CLUSTER = "launchwise"
QOS = "high"


def lacking() -> str | None:
    """The first program that accounting needs and this machine has not; None with all of them."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    return next((name for name in PROGRAMS if shutil.which(name, path=path) is None), None)


class SlurmAccounting:
    """A database and slurmdbd for one cluster.

    ``folder``: where the database and the sockets lie; short, because sockets have short names.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which slurmdbd finds the database."""
        return {"MYSQL_UNIX_PORT": str(self._folder / "sql")}

    def make_database(self) -> None:
        """Make an empty database, of which root is the owner."""
        options = ("--no-defaults", f"--datadir={self._folder / 'database'}", "--user=root")
        how = ("--auth-root-authentication-method=normal", "--skip-test-db")
        command = ("mariadb-install-db", *options, *how)
        subprocess.run(command, capture_output=True, check=True, timeout=120)

    def database(self) -> Sequence[str]:
        """Command of the database's daemon, which listens on a socket alone."""
        own = ("--no-defaults", "--user=root", "--skip-networking", "--skip-grant-tables")
        places = (f"--datadir={self._folder / 'database'}", f"--socket={self._folder / 'sql'}")
        # What the machine loses when its power fails matters to nobody.
        quick = ("--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M")
        return ("mariadbd", *own, *places, f"--pid-file={self._folder / 'sql.pid'}", *quick)

    def add(self, do: Callable[..., None], accounts: Sequence[str]) -> None:
        """Give root some accounts, the first one as the default, and one QOS beside ``normal``."""
        do("sacctmgr", "-i", "add", "cluster", CLUSTER)
        do("sacctmgr", "-i", "add", "qos", QOS)
        for name in accounts:
            do("sacctmgr", "-i", "add", "account", name, f"Cluster={CLUSTER}")
            do("sacctmgr", "-i", "add", "user", "root", f"Account={name}", f"QOS=normal,{QOS}")
        # Root has an account of its own, which would be the default.
        do("sacctmgr", "-i", "modify", "user", "root", "set", f"DefaultAccount={accounts[0]}")
