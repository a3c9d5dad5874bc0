"""Where an upstream data set is published, and where a local mirror holds it: `conf/source/<name>.yaml`."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from monitorbench.config.base import Config


class SourceFile(Config):
    """One raw file of an upstream data set."""

    path: str
    """Inside the upstream repository; empty where no single upstream file has this content."""
    mirror: str
    """Below `paths.sources`; empty where the local mirror does not hold it."""
    sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]
    """Of the content, after gunzip for a name in `.gz`; empty where it could not be looked up."""
    repo: str = ""
    """Where this file is in another repository than the source's."""
    revision: str = ""
    """The pinned commit of `repo`."""

    @model_validator(mode="after")
    def _pinned(self) -> Self:
        if bool(self.repo) != bool(self.revision):
            raise ValueError("repo and revision of a file belong together; give both or neither")
        return self


class Source(Config):
    """An upstream data set: a hub dataset or a Git repository at a pinned revision, and its files."""

    origin: Literal["hub", "github", "none"]
    """`none`: nowhere as these files; only a mirror has them."""
    repo: str
    """`owner/name` on the hub or on GitHub, or a web page for `none`."""
    revision: str
    """The pinned commit."""
    licence: str
    """SPDX identifier, or the upstream's own words."""
    files: Annotated[tuple[SourceFile, ...], Field(min_length=1)]
    note: str = ""
    """What a reader of the data card should know, such as how noisy the labels are."""

    def place(self, file: SourceFile) -> tuple[str, str]:
        """Repository and revision that hold a file."""
        return (file.repo, file.revision) if file.repo else (self.repo, self.revision)
