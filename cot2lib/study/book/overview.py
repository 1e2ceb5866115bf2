"""One picture of all verdicts, as HTML: the abstract, its phrases underlined, a tile for each claim, and the counts.

Every phrase and tile leads to a card on the page of claims, beside which the picture lies.
"""

import re
from html import escape

import pandas as pd

from cot2lib.study.book import cards, index
from cot2lib.study.book.index import judged
from cot2lib.study.book.ledger import STATEMENTS, because
from cot2lib.study.judge import AGREES, DEPENDS, DIFFERS, UNDECIDED, UNTESTED, group, in_words, joined
from cot2lib.study.printed import claims, sources
from cot2lib.study.report import bare

MARKS = {
    AGREES: "\N{CHECK MARK}",
    DIFFERS: "\N{BALLOT X}",
    DEPENDS: "\N{PLUS-MINUS SIGN}",
    UNDECIDED: "?",
    UNTESTED: "\N{EN DASH}",
}
STATEMENT, NUMBER, ENTROPY = "statements", "numbers", "entropies"
KINDS = {"direction": STATEMENT, "entropy": ENTROPY}  # of claims, by what is measured; everything else is a number
REWARD = ("tab:grpo", "tab:prosqa_prontoqa", "tab:dirichlet", "results sec", "app:exp-results-grpo", "sec:")
ROWS = ("theory", "sums", "graphs", "reward", "word problems")

# The abstract of the paper, word by word, and in brackets the claims that a phrase rests on; the first one colours it.
ABSTRACT = """
Modern language models generate chain-of-thought traces by autoregressively sampling tokens from a finite
vocabulary. While this discrete sampling has achieved remarkable success, conducting chain-of-thought with
continuously-valued tokens (CoT2) offers a [richer and more expressive
alternative](small-cot2-beats-large-discrete). Our work provides new theoretical guarantees and algorithms for CoT2,
motivated by logical reasoning tasks that inherently require search capabilities. Theoretically, we establish how
[CoT2 facilitates the model to track multiple discrete traces in parallel](consistency assumption-1); and quantify
[the level of achievable parallelism](packing) and [its benefits for inference efficiency](sample-complexity-ratio
sample-complexity-rate passk-mnns). We also provide [a CoT2-based one-layer transformer construction that solves the
combinatorial \N{LEFT DOUBLE QUOTATION MARK}subset sum problem\N{RIGHT DOUBLE QUOTATION MARK} given a sufficient
embedding dimension](construction). These insights arise from a [novel and effective supervision
strategy](main-mnns-cot2) where we match the language model outputs to the empirical token distributions of a set of
target traces. Complementing this, we introduce sampling strategies that unlock policy optimization methods for
CoT2. Our primary strategy samples and composes K discrete tokens at each decoding step to [control the level of
parallelism](k-infinity grpo-k-moderate). Experiments confirm that (i) [the optimal level of parallelism is governed
by the embedding dimension](budget-d16 budget-d24 budget-d32), (ii) [our continuous supervision strategy can
outperform alternative methods](convergence-2l2h convergence-prosqa convergence-prontoqa csft-above-coconut), and
(iii) [policy optimization with CoT2 indeed improves the performance of the model beyond its initial
discrete](grpo-improves) or [continuous supervision](dirichlet-improves).
""".strip().replace("\n", " ")
PHRASE = re.compile(r"\[(.+?)\]\((.+?)\)")


def counts(rows: pd.DataFrame, on_condition: bool = False) -> pd.DataFrame:
    """How many claims of each kind have which verdict (only those on a condition), with a row for all."""
    found = judged(rows)
    found = found[[bool(in_words(verdict).condition) for verdict in found]] if on_condition else found
    kinds = claims().loc[found.index, "metric"].map(KINDS).fillna(NUMBER)
    table = pd.crosstab(kinds.to_numpy(), found.map(group).to_numpy())
    table = table.reindex(index=[STATEMENT, NUMBER, ENTROPY], columns=[*MARKS], fill_value=0)
    table.loc["all"] = table.sum()
    return table


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """The counts for readers: a row for each verdict, with its mark."""
    return counts(rows).T.rename(lambda name: f"{MARKS[name]} {name}").reset_index(names="verdict")


def picture(rows: pd.DataFrame) -> str:
    found = judged(rows)
    phrases = PHRASE.sub(lambda marked: _phrase(marked[1], found[marked[2].split()]), escape(ABSTRACT))
    names = found.index.to_series().map(row_of)
    lines = "".join(f"<dt>{name}</dt><dd>{_tiles(found[names == name])}</dd>" for name in ROWS)
    legend = "".join(
        f'<span class="{look(name)}"><b class="sign">{sign}</b> {name}</span>' for name, sign in MARKS.items()
    )
    legend += "<span><b>*</b> on a condition</span>"
    return (
        f'<div class="overview"><p class="abstract">{phrases}</p>'
        f'<div><dl>{lines}</dl><p class="legend">{legend}</p></div></div>'
    )


def row_of(claim: str) -> str:
    """Which of `ROWS` a claim is in."""
    task, source = claims().loc[claim, "task"], sources()[claim]
    if task == "gsm8k":
        return "word problems"
    if claim in STATEMENTS or source.startswith("app:theory"):
        return "theory"
    if source.startswith(REWARD) and source != "sec:csft-results":
        return "reward"
    return "graphs" if "pro" in task else "sums"


def _phrase(words: str, found: pd.Series) -> str:
    """Words of the abstract, with a mark for each claim that they rest on."""
    signs = [f'<span class="sign" aria-hidden="true">{mark(verdict)}</span>' for verdict in found]
    first, *others = found.items()
    more = [_link(*claim, "phrase", sign) for claim, sign in zip(others, signs[1:])]
    return "".join([_link(*first, "phrase", words + signs[0], spoken=False), *more])


def _tiles(found: pd.Series) -> str:
    """Tiles of some claims, what agrees first: statements are large, and entropies are one strip."""
    found = found.sort_values(key=lambda verdicts: verdicts.map(group).map([*MARKS].index), kind="stable")
    kinds = claims().loc[found.index, "metric"].map(KINDS).fillna(NUMBER)
    large, small = (
        "\n".join(_link(claim, verdict, size, mark(verdict)) for claim, verdict in found[kinds == kind].items())
        for kind, size in ((STATEMENT, "tile"), (NUMBER, "tile small"))
    )
    strip = "".join(_strip(part) for _, part in found[kinds == ENTROPY].groupby(found.map(group), sort=False))
    return f"{large}\n{small}" + (f'<span class="strip">{strip}</span>' if strip else "")


def _link(claim: str, verdict: str, kind: str, shown: str, spoken: bool = True) -> str:
    """A link to a claim's card that says claim and verdict in full, aloud too where it shows a mark alone."""
    because_of = joined(group(verdict), because(verdict))
    said = escape(bare(f"{cards.heading(claim)}. Verdict: {because_of}."), quote=True)
    aloud = f' aria-label="{said}"' if spoken else ""
    return f'<a class="{kind} {look(group(verdict))}" href="{at(claim)}" title="{said}"{aloud}>{shown}</a>'


def _strip(found: pd.Series) -> str:
    """Entropies with one verdict, as wide as they are many."""
    name, many = group(found.iloc[0]), f"{len(found)} {ENTROPY}" if len(found) > 1 else "1 entropy"
    said = f"{many}: {name}. To the first card." if len(found) > 1 else f"{many}: {name}. To its card."
    opened = f'<a class="tile small {look(name)}" style="flex-grow: {len(found)}" href="{at(found.index[0])}"'
    return f'{opened} title="{said}" aria-label="{said}">{MARKS[name]} {len(found)}</a>'


def at(claim: str) -> str:
    """The address of a claim's card; of a series that of the section it stands in."""
    label = index.label(sources()[claim]) if index.in_series(claim) else f"claim-{claim}"
    return f"claims.html#{re.sub(r'[^a-z0-9]+', '-', label.lower())}"


def look(name: str) -> str:
    return f"is-{name.replace(' ', '-')}"


def mark(verdict: str) -> str:
    """The mark of a verdict; with a star where a condition stands on the card."""
    return MARKS[group(verdict)] + "*" * bool(in_words(verdict).condition)
