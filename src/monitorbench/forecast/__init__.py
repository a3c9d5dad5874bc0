"""What runs will take, before any of them is started: samples, tokens, hours, cost, and what is there already."""
