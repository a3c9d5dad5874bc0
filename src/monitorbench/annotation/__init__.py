"""Labels from people: blind batches, agreement, adjudication."""
