"""Guarantees on false alarms: which threshold keeps one, what it takes, and what is lacking where none does.

`order_statistic` says which of n benign scores a guarantee takes, `mix` what each question stands for,
`threshold` finds the threshold, `allowed` all thresholds that also keep a budget of alerts, `lacking` says
how many questions are missing. Everything takes arrays and numbers.
"""
