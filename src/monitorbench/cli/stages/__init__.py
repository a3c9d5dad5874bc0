"""Every stage as a command: `monitorbench NAME key=value …`, and the script of that name."""

from monitorbench.cli.stages import answers, data, monitors, whole

STAGES = {
    stage.name: stage
    for stage in (
        whole.CHOOSE,
        data.MIRROR,
        data.BUILD,
        data.ELICIT,
        data.ANNOTATE,
        data.AUDIT,
        data.EXPORT,
        monitors.TRAIN,
        monitors.FIT,
        monitors.MERGE,
        monitors.PUSH,
        monitors.EVALUATE,
        monitors.WORDING,
        answers.IMPORT,
        monitors.STRESS,
        answers.CALIBRATE,
        answers.SCORE,
        answers.COMBINE,
        answers.CONTROL,
        answers.TRANSFER,
        answers.RECOMMEND,
        answers.REPORT,
        whole.VERIFY,
        whole.DOCTOR,
        whole.GATE,
        monitors.SERVE,
        whole.PILOT,
    )
}
"""The stages by their names."""
