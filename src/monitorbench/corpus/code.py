"""The code that decides a dataset's content, as hashes: another version of it builds another dataset."""

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

_CONSTRUCTION = (
    "sources",
    "word_problems",
    "construct",
    "sandbox",
    "records.py",
    "corpus/paper/recipes.py",
    "corpus/elicited.py",
)


@cache
def construction_fingerprint() -> str:
    """SHA-256 of every module that makes candidates: sources, constructions, records, recipes."""
    return sha256_of_code(_CONSTRUCTION)


@cache
def code_fingerprint() -> str:
    """SHA-256 of every module that makes a dataset: the above and the rest of the corpus."""
    return sha256_of_code((*_CONSTRUCTION, "corpus"))


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
