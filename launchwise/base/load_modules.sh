# Loads environment modules for `launchwise.base.scripting.load_modules`. Shells of jobs may lack the
# function `module`, so its own file defines it.
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
