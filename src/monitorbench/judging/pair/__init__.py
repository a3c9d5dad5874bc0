"""A prompted model and a probe that reads its passes: judged with together, and served from one process."""
