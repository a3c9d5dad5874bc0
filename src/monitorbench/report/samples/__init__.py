"""The worst samples as the report shows them: hostile text, made visible."""
