"""The reproducibility summary: what was asked, by which means, what came out, what was easy and what was difficult.

The page has the form of the ML Reproducibility Challenge. Everything that is counted or measured is read from the
records.
"""

from collections.abc import Callable
from statistics import median

import pandas as pd

from cot2lib import runs
from cot2lib.study import report
from cot2lib.study.book import all_runs, index
from cot2lib.study.book.cards import diverged
from cot2lib.study.book.ledger import of_records, total, verdicts
from cot2lib.study.judge import AGREES, group
from cot2lib.study.printed import claims
from cot2lib.study.samples import hours


def scope() -> str:
    """The claims that are tested: how many of which part, and the six main ones."""
    known = index.rebuilt(of_records()).set_index("part").sum(axis=1)
    parts = ", ".join(f"{count} on {part}" for part, count in known.items())
    main = "\n".join(f"{number}. {finding.sentence}" for number, finding in enumerate(index.FINDINGS, 1))
    each = "Here every point of a printed series counts; in the results a series counts once."
    return f"The paper states {known.sum()} numbers and claims: {parts}. {each} Six carry it:\n\n{main}"


def methodology() -> str:
    """The runs by recipe, the hours they took, and where."""
    rows = _recorded()
    told = [
        f"{len(part)} runs by {report.recipe(profile)} in {hours(part).sum():.0f} core-hours"
        for profile, part in rows.groupby("profile")
    ]
    devices = ", ".join(sorted(set(rows["device"])))
    torch = ", ".join(sorted(set(rows["torch"].str.partition("+")[0])))
    on = f"They ran on {devices}, by torch {torch}."
    return f"On sums and graphs the records hold {' and '.join(told)}, the starts of rewarded runs among them. {on}"


def results() -> str:
    """How many claims agree, and each main claim with its verdict."""
    found = [f"- {finding.text(of_records())}" for finding in index.FINDINGS]
    return "\n".join([total(of_records()), "", *found])


def counts() -> pd.DataFrame:
    """Runs that each chapter plans, by recipe: how many are recorded, failed or were not made, and diverged."""
    rows = []
    for chapter in all_runs.SWEEPS:
        for profile, name in report.RECIPES.items():
            if specs := all_runs.sweep(chapter, profile):
                known = runs.recorded(specs)
                lost = known["id"].isin(diverged()).sum()
                row = {"chapter": chapter, "recipe": name, "planned": len(specs), "recorded": len(known)}
                rows.append(row | {"failed or not made": len(specs) - len(known), "diverged": lost})
    return pd.DataFrame(rows)


def easy() -> str:
    """The share of claims that agree on numbers, and what a run takes."""
    known = runs.recorded(all_runs.sweep("csft", "paper"))
    minutes = 60 * hours(known[known["engine"] == "fused"]).median()
    agree, judged = _agreeing("mnns")
    return (
        "Signed sums: anyone can list them, and a public code trains on them. A supervised run by the authors' recipe "
        f"takes {minutes:.1f} core-minutes in the median. {agree} of the {judged} claims on sums agree."
    )


def difficult() -> str:
    """The claims that need a reading, those on graphs, and the seeds that an open number waits for."""
    found = verdicts(of_records())
    read = found.str.contains(r"\bif ").sum()
    agree, judged = _agreeing("pro")
    waiting = of_records()["enough"].dropna().astype(str)
    more = pd.to_numeric(waiting.str.extract(r"(\d+)")[0], errors="coerce").dropna()
    seeds = (
        f" The open numbers whose runs spread would need {median(more):.0f} runs in the median." if len(more) else ""
    )
    return (
        f"The paper leaves things open: {read} verdicts hold under a reading or a condition that they name. No public "
        f"code trains on graphs, and the paper states half of that recipe: {agree} of {judged} claims on graphs agree."
        f"{seeds}"
    )


def _agreeing(task: str) -> tuple[int, int]:
    """How many claims on tasks of this name agree, and of how many."""
    found = verdicts(of_records())
    groups = found[claims().loc[found.index, "task"].str.startswith(task)].map(group)
    return int((groups == AGREES).sum()), int((groups != "").sum())


def _recorded() -> pd.DataFrame:
    """Rows of all recorded runs, each once, by profile."""
    parts = []
    for profile in report.RECIPES:
        specs = dict.fromkeys(run for chapter in all_runs.SWEEPS for run in all_runs.sweep(chapter, profile))
        parts.append(runs.recorded(list(specs)).assign(profile=profile))
    return pd.concat(parts).drop_duplicates("id")


TEXTS: dict[str, Callable[[], str]] = {
    "summary-scope": scope,
    "summary-methodology": methodology,
    "summary-results": results,
    "summary-easy": easy,
    "summary-difficult": difficult,
}
