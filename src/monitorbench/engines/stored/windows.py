"""Windows of a long response: where its tokens are cut so that each part is judged on its own."""

from itertools import pairwise


def windows(n_tokens: int, longest: int | None) -> list[tuple[int, int]]:
    """Half-open ranges that cover `n_tokens` (≥ 1) in order, none longer than `longest`; None: one for all.

    As few as can be, and of lengths that differ by one at most: a short rest would be a window of noise.
    """
    if longest is None or n_tokens <= longest:
        return [(0, n_tokens)]
    n = -(-n_tokens // longest)
    bounds = [number * n_tokens // n for number in range(n + 1)]
    return list(pairwise(bounds))
