"""Other systems' formats: their logs and scores in, ours out; their guardrails."""
