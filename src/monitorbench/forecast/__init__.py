"""What runs will take, before any of them is started: samples, tokens, hours, cost, what is there."""
