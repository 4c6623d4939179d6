"""Loads environment modules (Lmod, Environment Modules) into this process."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence

from launchwise.base.errors import UserError

LOAD = """
is_there() { type module >/dev/null 2>&1; }
if ! is_there && [ -r "${MODULESHOME-}/init/bash" ]; then
  . "$MODULESHOME/init/bash" >/dev/null 2>&1
elif ! is_there; then
  # A file of a system that was removed may be left over.
  for init in /etc/profile.d/*modules.sh /etc/profile.d/*lmod.sh; do
    if [ -r "$init" ]; then . "$init" >/dev/null 2>&1; fi
    if is_there; then break; fi
  done
fi
if ! is_there; then echo "there is no command module" >&2; exit 1; fi
module load "$@" || exit
exec "$ENV_PROGRAM" -0
"""
"""For bash. Shells of jobs may lack the function ``module``, so its own file defines it. What is
loaded are arguments, never part of this text."""

SHELLS_OWN = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "ENV_PROGRAM"})
CONTAINERS = frozenset({"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"})
"""Variables of processes in a container."""

PATIENCE_S = 120.0


def load_modules(names: Sequence[str]) -> None:
    """Change this process's environment as ``module load`` does; child processes inherit it.

    ``names``: modules in the order in which they are loaded; nothing happens without one, or in a
        container, which brings its own toolkit.
    Raises UserError when a module cannot be loaded, with what the module system said.
    """
    if not names or not CONTAINERS.isdisjoint(os.environ):
        return
    bash, env = shutil.which("bash"), shutil.which("env")
    if bash is None or env is None:
        raise UserError(f"module load {' '.join(names)}", "", "needs bash and env")
    try:
        done = subprocess.run(
            [bash, "--noprofile", "--norc", "-c", LOAD, "bash", *names],
            env={**os.environ, "ENV_PROGRAM": env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        raise _failed(names, f"took longer than {PATIENCE_S:g} s") from None
    said = done.stderr.decode(errors="replace").strip()
    # Old versions of Environment Modules end with 0 where they found nothing.
    if done.returncode != 0 or "ERROR" in said:
        raise _failed(names, said or f"ended with status {done.returncode}")
    _take(done.stdout)


def _take(listed: bytes) -> None:
    pairs = (entry.partition(b"=")[::2] for entry in listed.split(b"\0") if entry)
    loaded = {os.fsdecode(name): os.fsdecode(value) for name, value in pairs}
    for name in {*os.environ} - {*loaded} - SHELLS_OWN:
        del os.environ[name]
    for name, value in loaded.items():
        if name not in SHELLS_OWN:
            os.environ[name] = value


def _failed(names: Sequence[str], why: str) -> UserError:
    where = f"module load {' '.join(names)}"
    return UserError(where, "", f"{socket.gethostname()}: {why}; see `modules` in config.yaml")
