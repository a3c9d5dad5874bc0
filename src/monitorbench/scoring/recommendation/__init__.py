"""One answer from scored runs: which monitor, at which threshold, or what data is missing."""
