"""Models and adapters as they lie on disk: what names them, what is refused, how they are loaded."""
