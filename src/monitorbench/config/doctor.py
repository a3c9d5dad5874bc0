"""What `eval/doctor.py` tries on a machine."""

from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config


class Doctor(Config):
    """Which model the trials run, and what they may take."""

    model: Literal["tiny", "monitor"] = "tiny"
    """`tiny` is made on the spot; `monitor` takes the monitor's own weights, and may download them."""
    seconds: Annotated[float, Field(gt=0)] = 570
    """That all trials together may take, and none more than half of it."""
    disk_gib: Annotated[float, Field(ge=0)] = 10
    """Free space below `paths.runs` and `paths.models`."""
