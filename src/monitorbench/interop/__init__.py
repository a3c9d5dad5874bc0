"""The shapes of other systems: their logs, their guardrails, their telemetry."""
