"""Settings of `monitorbench doctor`, which tries out a machine."""

from typing import Annotated, Literal

from pydantic import Field

from monitorbench.config.base import Config


class Doctor(Config):
    """Model that the trials run, and the time and disk space they may take."""

    model: Literal["tiny", "monitor"] = "tiny"
    """Model of the trials. `tiny` is made on the spot; `monitor` takes the monitor's own weights, and may
    download them."""
    seconds: Annotated[float, Field(gt=0)] = 570
    """Seconds that all trials together may take; a single trial may take half of them."""
    disk_gib: Annotated[float, Field(ge=0)] = 10
    """Free space in GiB required below `paths.runs` and `paths.models`."""
