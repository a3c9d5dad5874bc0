"""The code of some modules, as a hash."""

import hashlib
from importlib.resources import files
from pathlib import Path


def sha256_of_code(places: tuple[str, ...]) -> str:
    """SHA-256 of these modules, and of those in these folders, of the package."""
    digest = hashlib.sha256()
    for place in places:
        found = files("monitorbench").joinpath(place)
        modules = [found] if found.is_file() else sorted(Path(str(found)).rglob("*.py"))
        for module in modules:
            if module.name.endswith(".py"):
                digest.update(module.read_bytes())
    return digest.hexdigest()
