"""What guardrails of other systems are sent and answer, and the event that telemetry knows a decision by."""
