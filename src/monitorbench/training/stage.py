"""The stage `train`, before anything heavy is imported: Unsloth comes before what it replaces."""

from pathlib import Path

from monitorbench.config.study import Study


def train(study: Study) -> Path:
    """See `training.sft.train`."""
    if study.training.loader == "unsloth":
        from monitorbench.training.unsloth_loader import import_unsloth

        import_unsloth()
    from monitorbench.training import sft

    return sft.train(study)
