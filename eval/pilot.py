"""The pilot before deployment: does letting the monitor intervene help or hurt?

    python eval/pilot.py environment=textworld agent=scripted monitor=bag_of_words pilot.tasks=50
    python eval/pilot.py outcomes=path/to/outcomes.jsonl
    MONITORBENCH_SOURCES=../shared/data python eval/pilot.py recorded=reflexion_mbpp

Prints the decision, and the run's directory (decision.json, outcomes.jsonl) as its last line.
"""

from pathlib import Path

from monitorbench.catalog.selectors import resolved
from monitorbench.config.entry import entry
from monitorbench.config.study import Study


@entry(__file__, "pilot", resolved)
def main(study: Study) -> Path:
    """Run the stage."""
    from monitorbench.intervention.run import run_pilot

    return run_pilot(study)


if __name__ == "__main__":
    main()
