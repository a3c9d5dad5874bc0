"""Effects of label-preserving changes on a monitor: paired differences, corrected, and the worst of them."""
