"""Sources in which Hydra finds monitorbench's settings: a project's own, and the default of every setting.

Hydra imports this module by itself wherever it runs, so it imports the models only once they are needed.
"""

from typing import Any

from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin


class SettingsSearchPath(SearchPathPlugin):
    """Puts a project's own files before Hydra's main ones, and the defaults behind all files."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add both places; see Hydra's `SearchPathPlugin`."""
        from monitorbench.config.project import project_conf

        if (own := project_conf()) is not None:
            search_path.prepend("monitorbench project", f"file://{own}", SearchPathQuery("main"))
        search_path.append("monitorbench", f"{SettingsSource.scheme()}://")


class SettingsSource(ConfigSource):
    """The files that no folder holds: `_settings`, and one for each kind, such as `engine/_vllm`."""

    @staticmethod
    def scheme() -> str:
        """Name the scheme by which a search path means this source."""
        return "monitorbench"

    def load_config(self, config_path: str) -> ConfigResult:
        """Make the tree of defaults that a path names."""
        from monitorbench.config.reference import tree

        config = tree(config_path.removesuffix(".yaml"))
        return ConfigResult(self.provider, self.full_path(), config, header={"package": None})

    def is_group(self, config_path: str) -> bool:
        """Say no: the groups are those of the folders."""
        return False

    def is_config(self, config_path: str) -> bool:
        """Say whether a path names a tree of defaults."""
        if not config_path.rpartition("/")[2].startswith("_"):
            return False
        from monitorbench.config.reference import names

        return config_path.removesuffix(".yaml") in names()

    def available(self) -> bool:
        """Say yes: the models come with the package."""
        return True

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[Any]:
        """List nothing: the trees are no options to choose from."""
        return []
