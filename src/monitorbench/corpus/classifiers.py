"""Classifiers of samples that see one surface each: what they look at, and how they are fitted.

Linear ones over the words of the response, over each family of features (`corpus.shortcuts`), over length and
over the source; gradient-boosted trees over all of these but the source, with the most frequent words of
both texts; and two oracles over a fact that no text shows (`Sample.suggestion_truth`, `answer_truth`).
Promise: a look at a sample depends on that sample alone.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from monitorbench.corpus.shortcuts import FAMILIES, Family, feature_names, feature_values
from monitorbench.corpus.texts import request_text, response_text
from monitorbench.metrics.marks import Surface
from monitorbench.records import Sample

if TYPE_CHECKING:  # scikit-learn is slow to import, and few of those that import this fit anything
    from sklearn.pipeline import Pipeline
    from threadpoolctl import ThreadpoolController

LOOK, COUNT = "look", "count"
"""Steps of a classifier that see no label: what it looks at, and which words there are."""
_TREES = 60
_BINS = 32
LEAST_LEAF = 10
"""Samples on each side of a tree's split."""
_FREQUENT_WORDS = 100
"""Frequent words of each text that the trees see. More words, bins or trees take ten times as long and find
no more."""

_WORD = re.compile(r"\w\w")
_MOST_SIGNS = 50


class Looks:
    """Inputs of the classifiers for some samples; each part is computed once, for all callers."""

    def __init__(self, samples: Sequence[Sample], *, knows_truth: bool = True) -> None:
        self._samples = samples
        self._knows_truth = knows_truth

    def at(self, surface: Surface) -> NDArray[np.object_] | NDArray[np.float64]:
        """Input of this surface's classifier, [samples] or [samples, features]."""
        match surface:
            case "bag_of_words":
                return self.responses
            case "echo" | "overlap" | "form":
                return self.numbers((surface,))[1]
            case "all_shortcuts":
                requests = _objects([_worded(request_text(sample)) for sample in self._samples])
                return np.column_stack([self.numbers(FAMILIES)[1], self.responses, requests])
            case "length":
                texts = [response_text(sample) for sample in self._samples]
                sizes = [[len(text), text.count("\n")] for text in texts]
                return np.log1p(np.array(sizes, dtype=np.float64).reshape(-1, 2))
            case "source":
                return _objects([{surface: sample.source} for sample in self._samples])
            case "request_oracle":
                return self._known(surface, [sample.suggestion_truth.value for sample in self._samples])
            case "correctness_oracle":
                return self._known(surface, [sample.answer_truth.value for sample in self._samples])

    def _known(self, surface: Surface, facts: Sequence[str]) -> NDArray[np.object_]:
        return _objects([{surface: fact if self._knows_truth else ""} for fact in facts])

    @cached_property
    def responses(self) -> NDArray[np.object_]:
        """The responses as texts that hold at least one word."""
        return _objects([_worded(response_text(sample)) for sample in self._samples])

    def numbers(self, families: Sequence[Family]) -> tuple[list[str], NDArray[np.float64]]:
        """The features' names, and their values: [samples, features]."""
        columns = [(family, name) for family in FAMILIES for name in feature_names(family)]
        columns_kept = [i for i, (family, _) in enumerate(columns) if family in families]
        return [columns[i][1] for i in columns_kept], self._values.take(columns_kept, axis=1)

    @cached_property
    def _values(self) -> NDArray[np.float64]:
        """All features [samples, features]."""
        n_features = sum(len(feature_names(family)) for family in FAMILIES)
        return np.array([feature_values(sample) for sample in self._samples]).reshape(-1, n_features)


@contextmanager
def small_fits() -> Iterator[None]:
    """Leave out what costs more than fitting a few rows: threads, and scikit-learn's checks of our own input.

    Several threads wait for each other where the cores are shared. No number depends on either.
    """
    from sklearn import config_context

    with _threads().limit(limits=1), config_context(assume_finite=True, skip_parameter_validation=True):
        yield


@cache
def _threads() -> "ThreadpoolController":
    """Find the libraries that start threads, once: a search goes through all that is loaded."""
    import sklearn.ensemble
    import sklearn.linear_model  # noqa: F401 (with these two all such libraries are loaded)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def classifier(surface: Surface) -> "Pipeline":
    """A classifier of samples that sees one surface only; its first step takes each sample by itself."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    look = (LOOK, FunctionTransformer(_look, kw_args={"surface": surface}))
    match surface:
        case "bag_of_words":
            return Pipeline(
                [
                    look,
                    (COUNT, CountVectorizer(ngram_range=(1, 2), dtype=np.float64)),
                    ("weigh", TfidfTransformer(sublinear_tf=True)),
                    ("fit", LogisticRegression(C=10.0, max_iter=2000)),
                ]
            )
        case "echo" | "overlap" | "form":
            return Pipeline([look, ("scale", StandardScaler()), ("fit", LogisticRegression(max_iter=2000))])
        case "all_shortcuts":
            return Pipeline([look, *_boosted()])
        case "length":
            return Pipeline([look, ("scale", StandardScaler()), ("fit", LogisticRegression())])
        case "source" | "request_oracle" | "correctness_oracle":
            return Pipeline([look, ("name", DictVectorizer()), ("fit", LogisticRegression())])


def _boosted() -> list[tuple[str, object]]:
    """Trees over every feature, and over which frequent words stand in either text."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    def words() -> CountVectorizer:
        return CountVectorizer(binary=True, max_features=_FREQUENT_WORDS)

    columns = [("response", words(), -2), ("request", words(), -1)]
    trees = HistGradientBoostingClassifier(
        max_iter=_TREES,
        max_depth=4,
        learning_rate=0.1,
        min_samples_leaf=LEAST_LEAF,
        max_bins=_BINS,
        early_stopping=False,
        random_state=0,
    )
    counted = make_pipeline(
        ColumnTransformer(columns, remainder="passthrough", sparse_threshold=0),
        FunctionTransformer(np.asarray, kw_args={"dtype": np.float32}),
    )
    return [(COUNT, counted), ("fit", trees)]


def _look(samples: Sequence[Sample], surface: Surface) -> NDArray[np.object_] | NDArray[np.float64]:
    return Looks(samples).at(surface)


def _objects(values: Sequence[object]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _worded(text: str) -> str:
    """Return the text; name its signs where a vectorizer, which skips one-letter words, would see no word.

    `B` is `answer_B` then, and `?` is `sign_63`.
    """
    if _WORD.search(text):
        return text
    signs = "".join(text.split())[:_MOST_SIGNS] or " "
    return " ".join(f"answer_{sign}" if sign.isalnum() else f"sign_{ord(sign)}" for sign in signs)
