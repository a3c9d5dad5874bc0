"""Studies composed from the project's own `conf/`, as a script would compose them."""

from pathlib import Path

from hydra import compose, initialize_config_dir

from monitorbench.config.load import load
from monitorbench.config.study import Study

CONF = Path(__file__).parent.parent / "conf"


def study(*overrides: str, primary: str = "train") -> Study:
    """The study that `<primary> <overrides>` composes to; without W&B, unless they say otherwise."""
    if not any(one.startswith("tracking") for one in overrides):
        overrides = ("tracking=none", *overrides)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return load(compose(primary, list(overrides)))
