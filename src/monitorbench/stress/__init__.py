"""Whether a monitor's verdicts stand when the judged text changes in ways that change no label."""
