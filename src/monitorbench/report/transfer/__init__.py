"""Show a transfer study: what each training did in each cell, as rows, sentences, matrices and sections."""
