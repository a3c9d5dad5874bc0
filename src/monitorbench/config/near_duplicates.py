"""Settings of the search for near duplicates across the splits of a built corpus."""

from typing import Annotated

from pydantic import Field, model_validator

from monitorbench.config.base import Config


class NearDuplicates(Config):
    """Rule for when two texts count as the same, by the Jaccard similarity of their 8-byte shingles."""

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Similarity from which two texts are the same."""
    permutations: Annotated[int, Field(ge=16, le=1024)] = 128
    """Length of a MinHash signature."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1
    """Seed of the hashes."""
    shortest_response: Annotated[int, Field(ge=0)] = 80
    """Characters from which a response alone is evidence of overlap; an answer such as "(B)" is none."""

    @model_validator(mode="after")
    def _recall(self) -> "NearDuplicates":
        if self.permutations * self.threshold < 7:
            raise ValueError(
                f"threshold={self.threshold:g} with permutations={self.permutations} misses more than one "
                "pair in a thousand; expected permutations * threshold of 7 or more"
            )
        return self
