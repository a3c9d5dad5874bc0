"""The report's figures, as SVG."""
