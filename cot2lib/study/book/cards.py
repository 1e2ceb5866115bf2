"""Claim cards: for each claim of the paper its sentence, verdict, numbers, picture and what made them, as MyST."""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd

from cot2lib import study
from cot2lib.metrics import mean_interval
from cot2lib.study import judge
from cot2lib.study.book import index
from cot2lib.study.book.ledger import KINDS, OF_SERIES, profile_of, reading_records
from cot2lib.study.claims.kinds import SETTLED, Drawn, Number, OfRuns
from cot2lib.study.claims.queries import Read
from cot2lib.study.judge import AGREES, DEPENDS, DIFFERS, UNDECIDED, UNTESTED, Words, group, in_words
from cot2lib.study.look import Shown
from cot2lib.study.printed import claims, plain, readable, sources, value_text
from cot2lib.study.report import describe, recipe

COLOURS = {
    AGREES: "success", DIFFERS: "danger", DEPENDS: "info", UNDECIDED: "warning", UNTESTED: "muted", "": "muted",
}  # fmt: skip
METRICS = {
    "val_accuracy": "validation accuracy", "accuracy": "accuracy", "entropy": "entropy", "mean_length": "mean length",
    "wall_time": "time of one run",
}  # fmt: skip
TASKS = {
    "mnns": "MNNS", "mnns4": "MNNS with four digits", "prosqa": "ProsQA",
    "prontoqa": "ProntoQA", "gsm8k": "GSM8K", "any": "any task", "markov": "Markov", "all": "all tasks",
    "construction": "the construction",
}  # fmt: skip
ERRATA = {  # labels of what the errata say of a claim
    "construction": "zero", "read-off": "zero", "packing": "packing", "threshold-packing": "packing",
    "sample-complexity-ratio": "ratio", "sample-complexity-rate": "size", "assumption-1": "assumption",
    "budget-d16": "arrow", "budget-b16-d16": "arrow",
    "gamma-direction": "scale", "curriculum-no-gain": "curriculum", "rl-consistent": "gains",
    "rl-mnns-smaller": "gains",
}  # fmt: skip
MARGINS = (0.6, 1.6)  # times the margin, which a card tries
MANY = 4  # seeds that are counted and not named
MOST = 12  # lines of a card's picture
EDGE = 4.0  # percent of its width that stay free at both ends
MIDDLE = 11  # pixels from the top


def page(rows: pd.DataFrame) -> str:
    """All cards but those of the long series, below the paper's figures, tables and propositions in their order.

    `rows` is the ledger for all seeds.
    """
    read, lines = reading_records(), []
    series = sources()[rows["id"][index.is_series(rows)].unique()].value_counts()
    for title, source, part in index.sections(rows[~index.is_series(rows)]):
        lines += [f"({index.label(source)})="] if source else []
        lines += [f"## {title}", ""]
        if points := series.get(source, 0):
            lines += [f"The {points} points of its series are in {{numref}}`{OF_SERIES}`.", ""]
        lines += [card(claim, list(both.itertuples()), read) for claim, both in part.groupby("id", sort=False)]
    return "\n".join(lines)


def card(claim: str, rows: Sequence[tuple], read: Read) -> str:
    """A claim's card, from its rows of the ledger, as named tuples."""
    row = next(row for row in rows if row.profile == SETTLED)
    profile, lines = drawn(claim, read)
    words, seen = in_words(row.verdict), index.links(index.shown_with(claim))
    shown = next(row for row in rows if row.profile == profile)
    runs = picture(lines, (shown.predicted_low, shown.predicted_high)) if lines else None
    epochs = ", best evaluations" if shown.judged == "best" else ""
    parts = [
        f"**The paper:** {_sentence(claim)}. {_verdict(words)}",
        f"**What is wrong, and what is still true:** {{ref}}`erratum-{ERRATA[claim]}`." if claim in ERRATA else "",
        f"**Does our quick recipe's mean reach it?** {plain(row.reached)}." if isinstance(row.reached, str) else "",
        *dict.fromkeys(_ours(row) for row in rows if row.seeds),
        *([f"Seed by seed, {recipe(profile_of(shown))}{epochs}:", runs.figure] if runs else []),
        _judged(shown),
        " ".join(filter(None, hangs_on(claim, row.verdict, lines if profile == SETTLED else [], read))),
        f"**Seen in** {seen}." if seen else "",
        *_made(shown, spent(lines), any("sampler" in rows for line in lines for rows in line.runs)),
        f"Defined in {{source}}`{_defined(claim)}`.",
    ]
    if runs:
        numbers = f"data:text/csv;charset=utf-8,{quote(runs.csv())}"
        parts[-1] += f' <a download="{claim}.csv" href="{numbers}">Every seed\'s number as CSV</a>'
    title = f"{{bdg-{COLOURS[words.group]}}}`{words.group or 'no claim'}` {heading(claim)}"
    body = "\n\n".join(filter(None, parts))
    return f":::{{dropdown}} {title}\n:name: claim-{claim}\n\n{body}\n:::\n"


def _verdict(words: Words) -> str:
    condition = f" **On the condition** that {plain(words.condition)}." if words.condition else ""
    verdict = judge.joined(words.group, plain(words.why))
    return f"**Verdict:** {verdict}.{condition}" if words.group else "It claims nothing."


def heading(claim: str) -> str:
    return f"{plain(readable(claim))}: {value_text(claim)}"


def _sentence(claim: str) -> str:
    known = claims().loc[claim]
    tasks = plain(re.sub(r"\w+", lambda name: TASKS.get(name[0], name[0]), known["task"]).replace("/", ", "))
    said = heading(claim).removeprefix(f"{tasks}, ")  # a setting on graphs names its task
    return ", ".join(filter(None, [tasks, METRICS.get(known["metric"], ""), said]))


def _ours(row: tuple) -> str:
    said = [] if pd.isna(row.last) else [KINDS[row.id].ours(row)]
    if row.judged == "best":
        said = [f"last evaluations {said[0]}, best {row.best:.1f}"]
    return f"**Ours, {recipe(profile_of(row))}:** {', '.join([*said, f'{row.seeds} seeds'])}."


def _judged(row: tuple) -> str:
    """What a number is judged by besides its mean, in words; "" for other claims."""
    number, said = KINDS[row.id], []
    if not isinstance(number, Number) or pd.isna(row.difference):
        return ""
    if pd.notna(row.predicted_low):
        low, high = np.clip([row.predicted_low, row.predicted_high], 0.0, number.top)
        taken = f"the mean of {number.paper_runs} runs" if number.paper_runs > 1 else "one run"
        said.append(
            f"The 95 % prediction interval for {taken} is {low:.{number.unit.digits}f} to "
            f"{high:.{number.unit.digits}f} {number.shown_in.name}, if runs are normally distributed."
        )
    if pd.notna(row.split_half):
        said.append(
            "With the best evaluation chosen on one half of the held-out questions, the accuracy on the other half is "
            f"{row.split_half:.1f} %."
        )
    return " ".join(said)


def _made(row: tuple, hours: float, rewarded: bool) -> list[str]:
    """The command, in a box that copies it, and what the runs took."""
    parts = []
    if isinstance(row.command, str):
        again = "Check" if row.command.startswith("pytest") else "Train"
        parts = [f"**{again} again:**", f"```bash\n{row.command}\n```"]
    if hours:
        without = ", without the training of the models that they start from" if rewarded else ""
        parts.append(f"These runs took {hours:.2f} core-hours{without}.")
    return parts


def _defined(claim: str) -> str:
    """The file and the line that say how a claim is measured."""
    for name, begin in (("claims/coded.py", f'    "{claim}": '), ("claims.csv", f"{claim},")):
        for number, line in enumerate((Path(study.__file__).parent / name).read_text().splitlines(), 1):
            if line.startswith(begin):
                return f"cot2lib/study/{name}#L{number}"
    raise KeyError(claim)


# What a verdict hangs on


def hangs_on(claim: str, verdict: str, lines: list[Drawn], read: Read) -> list[str]:
    """What the verdict on a claim by runs of the authors' recipe (`lines`) hangs on: single seeds, the margin, and
    runs that end in two groups."""
    word, number = group(verdict), KINDS[claim]
    if not lines or word == UNTESTED or verdict.startswith((judge.REFUTED, judge.UNLEARNT)):
        return []
    if not isinstance(number, Number):
        rest = lambda seed: lambda query, profile: read(query, profile).drop(seed, errors="ignore")
        return [_seeds(word, lines, lambda seed: group(KINDS[claim].row(claim, SETTLED, rest(seed))["verdict"]))]
    (line,) = lines
    unit = line.unit
    judged = lambda values, unit: group(judge.number_verdict(values, line.stated, number.paper_runs, unit))
    units = [replace(unit, tight=factor * unit.tight, share=factor * unit.share) for factor in MARGINS]
    other = {one: found for one in units if (found := judged(line.values, one)) != word}
    margin = lambda one: replace(one, name=number.unit.name).text(one.margin(line.stated))
    told = "; ".join(f"{margin(one)}: {found}" for one, found in other.items())
    return [
        judge.outcomes(line.values, line.stated, unit),
        _seeds(word, lines, lambda seed: judged(line.values.drop(seed), unit)),
        f"Another margin would change the verdict ({told})." if told else "",
    ]


def _seeds(word: str, lines: list[Drawn], without: Callable[[int], str]) -> str:
    """Which single seeds, left out, change the group of a verdict."""
    seeds = sorted(set().union(*(line.values.index for line in lines)))
    whole = f"{len(seeds)} seeds" + " of all comparisons" * (len({len(line.values) for line in lines}) > 1)
    turned: dict[str, list[str]] = {}
    for seed in seeds:
        if (found := without(seed)) != word:
            turned.setdefault(found, []).append(str(seed))
    if not turned:
        return f"The verdict stays if any one of the {whole} is left out."
    named = [
        f'to "{found}" without ' + (f"seed {' or '.join(which)}" if len(which) < MANY else f"any one of {len(which)}")
        for found, which in turned.items()
    ]
    return f"Leaving out one of the {whole} can change the verdict: {'; '.join(named)}."


# Runs


def drawn(claim: str, read: Read) -> tuple[str, list[Drawn]]:
    """The runs of a claim, and their profile: the one that settles it, or else `quick`."""
    kind = KINDS[claim]
    if not isinstance(kind, OfRuns):
        return SETTLED, []
    settled = kind.drawn(claim, SETTLED, read)
    return (SETTLED, settled) if settled else ("quick", kind.drawn(claim, "quick", read))


def spent(lines: Sequence[Drawn]) -> float:
    """Core-hours of the runs in some lines, each counted once; 0 unless they are known of all, and on CPUs alone."""
    runs = [rows for line in lines for rows in line.runs]
    if not runs or any(not {"id", "hours", "device"} <= set(rows) for rows in runs):
        return 0.0
    each = pd.concat([rows[["id", "hours", "device"]] for rows in runs]).drop_duplicates("id")
    return float(each["hours"].sum()) if each["device"].str.startswith("cpu").all() else 0.0


# The picture


def picture(lines: Sequence[Drawn], judged_by: tuple[float, float] = (np.nan, np.nan)) -> Shown:
    """A line for each comparison of a claim, as HTML with SVG in the colours of the page; its numbers are all runs.

    Dots are seeds, the bar is the 95 % interval of their mean, the diamond is the paper's number, or no difference. Of
    a number the thin line is the prediction interval by which it is judged, `judged_by`, as far as the number can lie
    there. Lines of one unit share an axis. Of more than `MOST` lines those with the smallest means are drawn. Places
    are percentages, so that the text keeps its size however narrow the page is.
    """
    kept = sorted(lines, key=lambda line: line.values.mean())[:MOST] if len(lines) > MOST else lines
    units = dict.fromkeys(line.unit for line in kept)
    ends = {unit: _ends([line for line in kept if line.unit == unit], judged_by) for unit in units}
    drawn = "".join(_line(line, *ends[line.unit], judged_by) for line in kept)
    scales = "".join(
        f"<div class='claim-scale'><span>{low:.{unit.digits}f}</span><span>{unit.name}</span>"
        f"<span>{high:.{unit.digits}f}</span></div>"
        for unit, (low, high) in ends.items()
    )
    left = len(lines) - len(kept)
    more = f"<p>{left} more lines have larger means; the CSV file holds them.</p>" if left else ""
    columns = ["measured", "seed", "ours", "paper", "unit"]
    runs = [(line.label, *run, line.stated, line.unit.name) for line in lines for run in line.values.items()]
    return Shown(f"<div class='claim-picture'>{drawn}{scales}{more}</div>", pd.DataFrame(runs, columns=columns))


def _ends(lines: Sequence[Drawn], judged_by: tuple[float, float]) -> tuple[float, float]:
    """The ends of an axis that shows everything of some lines."""
    shown = [[*line.values, line.stated, *_interval(line), *np.clip(judged_by, *line.within)] for line in lines]
    low, high = np.nanmin(np.concatenate(shown)), np.nanmax(np.concatenate(shown))
    apart = (high - low) or lines[0].unit.tight
    return float(high - apart), float(low + apart)


def _interval(line: Drawn) -> tuple[float, float]:
    interval = mean_interval(line.values, *line.within)
    return interval.low, interval.high


def _line(line: Drawn, low: float, high: float, judged_by: tuple[float, float]) -> str:
    """The words of a line, above its axis from `low` to `high`."""
    at = lambda value: f"{EDGE + (100 - 2 * EDGE) * (value - low) / (high - low):.2f}%"
    (left, right), level = _interval(line), f"y1='{MIDDLE}' y2='{MIDDLE}'"
    ours = f"{describe(line.values.mean(), left, right, line.unit.digits)} {line.unit.name}"
    beside = "no difference" if line.stated == 0 else f"the paper's {line.stated:g}"
    spans = {"judged": np.clip(judged_by, *line.within), "range": (left, right)}
    bar = "".join(
        f"<line class='{name}' x1='{at(one)}' x2='{at(other)}' {level}/>"
        for name, (one, other) in spans.items()
        if not np.isnan(one)
    )
    dots = "".join(f"<circle cx='{at(value)}' cy='{MIDDLE}' r='4'/>" for value in line.values)
    paper = f"<text x='{at(line.stated)}' y='{MIDDLE + 5}'>\N{BLACK DIAMOND}</text>"
    runs = ", ".join(f"{value:.{line.unit.digits}f}" for value in line.values)
    said = html.escape(f"{line.label or 'ours'}: {ours}, beside {beside}; runs {runs}", quote=True)
    axis = f"<line class='axis' x1='{EDGE}%' x2='{100 - EDGE}%' {level}/>"
    return (
        f"<div class='claim-line'><span>{html.escape(line.label)}</span><span>{ours}</span></div>"
        f'<svg role="img" aria-label="{said}">{axis}{bar}{dots}{paper}</svg>'
    )
