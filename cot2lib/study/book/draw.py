"""The picture on a claim's card."""

import html
from collections.abc import Sequence

import numpy as np
import pandas as pd

from cot2lib.metrics import mean_interval
from cot2lib.study.claims.kinds import Drawn
from cot2lib.study.look import Shown
from cot2lib.study.report import describe

MOST = 12  # lines of a card's picture
EDGE = 4.0  # percent of its width that stay free at both ends
MIDDLE = 11  # pixels from the top


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
    return Shown(f"<div class='claim-picture'>{drawn}{scales}{more}</div>", _by_seed(lines))


def _by_seed(lines: Sequence[Drawn]) -> pd.DataFrame:
    """Every seed's value."""
    rows = [
        (line.label, seed, float(value), line.stated, line.unit.name)
        for line in lines
        for seed, value in line.values.items()
    ]
    return pd.DataFrame(rows, columns=["measured", "seed", "ours", "paper", "unit"])


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
