"""The trainer's own settings, from ours."""

from pathlib import Path

from trl import SFTConfig

from monitorbench.config.training import Training
from monitorbench.training.processes import n_processes, on_cpu


def arguments(training: Training, checkpoints: Path, seed: int) -> SFTConfig:
    """What TRL is told: one planned forward pass a row, and none of its own data preparation."""
    passes = training.batch_size // training.micro_batch_size
    args = SFTConfig(
        output_dir=str(checkpoints),
        max_steps=training.max_steps,
        per_device_train_batch_size=1,  # a row of the data set is a whole forward pass
        gradient_accumulation_steps=passes // n_processes(),
        learning_rate=training.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=round(training.warmup_share * training.max_steps),
        weight_decay=training.weight_decay,
        max_grad_norm=training.max_grad_norm,
        gradient_checkpointing=training.gradient_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        bf16=False,  # the base is in `training.dtype` already; the adapter stays in float32
        use_cpu=on_cpu(training),
        ddp_backend="gloo" if n_processes() > 1 and on_cpu(training) else None,
        ddp_find_unused_parameters=False,
        seed=seed,
        data_seed=seed,
        logging_steps=1,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        report_to=[],
        save_strategy="steps",
        save_steps=training.checkpoint_every,
        save_total_limit=1,
        remove_unused_columns=False,
        max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    if not on_cpu(training):
        args._n_gpu = 1  # else a process that sees several GPUs would take several rows at once
    return args
