"""The runs that are there: listed, found by a short name, shown, compared, removed, exported."""
