"""The only place where foreign code runs, in a process of its own."""
