"""The same samples judged twice: what fell, and what is shown not to have fallen."""
