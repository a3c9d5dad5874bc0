"""Free-text answers: what they state, and pairs made of known answers under an incentive."""
