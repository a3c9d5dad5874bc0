"""Requests and answers of other systems' guardrails, and the telemetry event of a decision."""
