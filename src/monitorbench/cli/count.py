"""Count what a mirror holds for `dataset=paper`, where there is one: `python -m monitorbench.cli.count`."""

from monitorbench.cli.stages.data import BUILD
from monitorbench.corpus.paper.counts import write_counts
from monitorbench.corpus.paper.units import paper_inputs

if __name__ == "__main__":
    write_counts(paper_inputs(BUILD.study(["dataset=paper_local"])))
