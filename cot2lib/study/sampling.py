"""Chapter `sampling`: Pass@k, Maj@k, and other ways to feed one trace than in training."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from cot2lib import passk, runs
from cot2lib.decode import rules
from cot2lib.errors import RecordError, SpecError
from cot2lib.model import GPT2Stack
from cot2lib.passk import MOST, TOP_K
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import PROFILES, TWENTY
from cot2lib.study import look, measured, show, sweeps
from cot2lib.study.frame import at, ordered, tidy
from cot2lib.study.look import PAPER, Shown, ticked
from cot2lib.study.printed import paper_value
from cot2lib.study.report import RECIPES, Text, bullets
from cot2lib.study.series import LOOKS
from cot2lib.thoughts import Base, Rule
from cot2lib.training.data import stack_data
from cot2lib.training.evaluation import accuracy, evaluate

POINT = ["recipe", "temperature", "tries"]  # columns of a point of a Pass@k curve
CLAIM = "passk-discrete-t{temperature:.1f}-k{tries}"  # the paper's discrete Pass@k (%)
SHARPER = {  # fields of a base thought, in words
    "temperature": "temperature of the thoughts",
    "threshold": "threshold of the thoughts",
    "top": "tokens that are kept",
}

Stacks = Mapping[str, tuple[GPT2Stack, Sequence[RunSpec]]]  # trained models by method


def checked(top_k: int, ks: Sequence[int]) -> None:
    """Raise SpecError for parameters that nothing was measured with."""
    if top_k not in (0, TOP_K):
        raise SpecError(f"top_k={top_k}: measured are 0 (all tokens) and {TOP_K}.")
    if not all(1 <= k <= MOST for k in ks):
        raise SpecError(f"ks={list(ks)}: give numbers of samples from 1 to {MOST}.")


def models(profile: str) -> list[RunSpec]:
    """The small models of a profile, also those on the paper's split."""
    on_split = [run for run in sweeps.on_split(sweeps.small(profile, TWENTY)) if run.split is not None]
    return [*sweeps.small(profile), *on_split]


def of_runs(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Pass@k (%) of trained runs of one shape; raises RecordError if the weights of one are not here."""
    return passk.measure(runs.load_stack(specs, missing="error"), specs)


def read(profile: str, stacks: Stacks, measured_here: bool = False) -> pd.DataFrame:
    """Pass@k of some models, shipped or measured here, and of the other profile where all seeds are shipped.

    Columns are those of `passk.measure`, `k` as `tries`, and `recipe`, `method`, `seed`. RecordError if Pass@k of
    `profile` is neither shipped nor to be measured.
    """
    specs = [spec for _, group in stacks.values() for spec in group]
    tables = {name: measured.read("sampling", name) for name in PROFILES}
    if measured_here:
        tables[profile] = pd.concat([passk.measure(*model) for model in stacks.values()], ignore_index=True)
    elif absent := [spec for spec in specs if spec.id not in set(tables[profile]["id"])]:
        run = absent[0]
        commands = f"`cot2 run sampling --profile {profile}` and `cot2 measure sampling --profile {profile}`"
        remedy = f"make it with {commands}, or ask" if run in sweeps.small(profile) else "ask"
        said = f"no Pass@k of run {run.id} (seed {run.seed}) is recorded under {profile}"
        raise RecordError(f"{said}; {remedy} with retrain=True.")
    seeds = list(dict.fromkeys(spec.seed for spec in specs))
    parts = []
    for name, table in tables.items():
        wanted = specs if name == profile else sweeps.small(name, seeds)
        known = pd.DataFrame([(run.id, run.method, run.seed) for run in wanted], columns=["id", "method", "seed"])
        if known["id"].isin(table["id"]).all():
            parts.append(table.merge(known).assign(profile=name))
    return tidy(pd.concat(parts, ignore_index=True)).rename(columns={"k": "tries"})


def lacking(rows: pd.DataFrame) -> Text | None:
    """A bullet for each profile that `read` leaves out, with the remedy."""
    sentence = (
        "**Not drawn, {}**: its Pass@k was not measured for all of these seeds; "
        'set `profile = "{}"` and `retrain = True` to make it here.'
    )
    return bullets([sentence.format(RECIPES[name], name) for name in PROFILES if name not in set(rows["profile"])])


# Many samples


def above(rows: pd.DataFrame, base: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """How far each group of rows is above the base rows of its models, paired by seed (`show.gaps`).

    The first column of `by` tells models apart, whose rows the base has once for each seed.
    """
    names = [by[0], "seed"]
    beside = rows.drop(columns=value).merge(base[[*names, value]], on=names)
    both = pd.concat([rows.assign(side="own"), beside.assign(side="base")], ignore_index=True)
    return show.gaps(both, by, "side", "own", "base", value)


def beside_one_trace(rows: pd.DataFrame) -> pd.DataFrame:
    """How far discrete Pass@k is above one greedy CoT2 trace, at each `POINT`."""
    greedy = at(rows, method="CoT2", temperature=0.0, tries=1)
    return above(at(rows, method="discrete CoT"), greedy, POINT, "pass_at_k")


def pass_at_k(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Pass@k by k, a row of panels per recipe and one per temperature: thin lines are models, thick ones their mean.

    Short marks are the paper's discrete values, a dotted line its one CoT2 accuracy.
    """
    line = lambda method, temperature: paper_value("passk-cot2") if method == "CoT2" else None
    labels = ("k", "Pass@k (%)")
    shown = look.curves(rows, "method", "temperature", line, finding, "tries", "pass_at_k", labels)
    temperatures, ks = sorted(rows["temperature"].unique()), range(1, MOST + 1)
    for place, axis in enumerate(shown.figure.axes):
        warmth = temperatures[place % len(temperatures)]
        said = [paper_value(CLAIM.format(temperature=warmth, tries=k)) for k in ks]
        axis.scatter(ks, said, s=60, **PAPER | {"linewidths": 1.4, "color": "#8a3b00"})
        axis.axhline(paper_value("passk-cot2"), color="#00406b", linewidth=1.2, linestyle=":")
        axis.set_xticks([1, 5, 10, 14])
    return shown


def pass_table(rows: pd.DataFrame, ks: Sequence[int]) -> pd.DataFrame:
    """Pass@k (%) by recipe, method, temperature and sampling, and discrete Maj@k for the last k, with intervals."""
    parts = [at(rows, tries=k).assign(counted=f"Pass@{k}", share=lambda part: part["pass_at_k"]) for k in ks]
    parts.append(at(rows, tries=ks[-1]).assign(counted=f"Maj@{ks[-1]}", share=lambda part: part["maj_at_k"]))
    long = pd.concat(parts).dropna(subset="share")
    long["counted"] = ordered(long["counted"])
    table = show.cells(long, ["recipe", "method", "temperature", "top_k"], "counted", "share", show.mean_of)
    return table.rename(columns={"top_k": "sampled from"})


def overtaking(rows: pd.DataFrame, one: pd.DataFrame) -> pd.DataFrame:
    """From which k on mean discrete Pass@k is above CoT2: the paper's, ours above one trace, and above as many."""
    often = show.gaps(rows, POINT, "method", "discrete CoT", "CoT2", "pass_at_k")
    places = one[["temperature", "tries"]].drop_duplicates()
    said = [paper_value(CLAIM.format(**place)) for place in places.to_dict("records")]
    lead = np.array(said) - paper_value("passk-cot2")
    paper = places.assign(recipe="paper", against="its horizontal CoT2 line", mean=lead)
    ours = [one.assign(against="one greedy CoT2 trace"), often.assign(against="CoT2 sampled as often")]
    leads = pd.concat([paper, *ours])
    leads["recipe"] = ordered(leads["recipe"], ("paper", *RECIPES.values()))
    leads["against"] = ordered(leads["against"])

    def first(lead: pd.Series) -> str:
        behind = lead.index[lead <= 0]
        start = 1 if behind.empty else int(behind.max()) + 1
        return str(start) if start <= lead.index.max() else "never"

    table = show.cells(leads.set_index("tries"), ["recipe", "against"], "temperature", "mean", first)
    return table.rename(columns={"recipe": "numbers", "against": "discrete samples against"})


# Other thoughts than in training: sharpened, pruned or sampled ones


def accuracies(models: Sequence[tuple[GPT2Stack, Sequence[RunSpec]]], thoughts: Sequence[Rule]) -> pd.DataFrame:
    """Validation accuracy (%) of every run, fed by each of some thought rules, equal ones once.

    Columns: `layers`, `d_model` and `seed` of the run; `sampler` and the fields of the rule; `accuracy`.
    """
    rows = []
    for stack, specs in models:
        data, seeds = stack_data(specs, stack.device), [spec.seed for spec in specs]
        for thought in dict.fromkeys(thoughts):
            found = evaluate(stack, data, seeds, rules(thought, specs[0].outputs))
            named = {"sampler": type(thought).__name__, **asdict(thought)}
            for spec, share in zip(specs, accuracy(data, found).tolist()):
                of_run = {"layers": spec.model.layers, "d_model": spec.model.d_model, "seed": spec.seed}
                rows.append(of_run | named | {"accuracy": share})
    return tidy(pd.DataFrame(rows))


def varied(rows: pd.DataFrame, *fields: str) -> pd.DataFrame:
    """Rows of base thoughts in which these fields alone may differ from the default."""
    keep = rows["sampler"] == Base.__name__
    for name, value in asdict(Base()).items():
        keep &= (name in fields) | rows[name].eq(value)
    return rows[keep]


def sharpened(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Accuracy over temperature, threshold and number of tokens of the thoughts, a line per kind of model; dots are
    seeds."""
    fields = [field for field in SHARPER if varied(rows, field)[field].nunique() > 1]
    parts = [varied(rows, field).assign(field=SHARPER[field], value=rows[field]) for field in fields]
    drawn = pd.concat(parts)
    drawn = drawn[drawn["field"].ne(SHARPER["top"]) | drawn["value"].gt(0)]  # 0 for no limit
    labels = "", "validation accuracy (%)"
    shown = look.lines(
        drawn, "value", "accuracy", "layers", labels, "field", finding, limits=(0.0, 100.0), sharex=False, aspect=1.1
    )
    for axis in shown.figure.axes:
        axis.set(ylim=(0, 102))
    if "top" in fields:
        ticked(shown.figure.axes[-1:], sorted(set(rows["top"]) - {0}))
    return Shown(shown.figure, rows[["layers", "d_model", *SHARPER, "seed", "accuracy"]], finding)


def sampled_thoughts(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Accuracy over K if thoughts are means of K sampled tokens; level lines are models fed their whole mixtures."""
    drawn = at(rows, sampler="MTS").astype({"k": int})
    labels = "tokens K sampled per thought", "validation accuracy (%)"
    shown = look.lines(drawn, "k", "accuracy", "layers", labels, finding=finding, limits=(0.0, 100.0))
    for layers, mean in varied(rows).groupby("layers")["accuracy"].mean().items():
        shown.figure.axes[0].axhline(mean, color=LOOKS["layers"][layers][0], linestyle="--", linewidth=0.8)
    ticked(shown.figure.axes, sorted(drawn["k"].unique()), ylim=(0, 102))
    return Shown(shown.figure, rows[["layers", "d_model", "sampler", "k", "seed", "accuracy"]], finding)
