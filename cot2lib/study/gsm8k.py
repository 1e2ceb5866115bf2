"""The chapter `gsm8k`: accuracy by limit and while training, and what the trained model answers."""

from collections.abc import Callable, Sequence
from itertools import product, starmap

import numpy as np
import pandas as pd
from torch import nn

from cot2lib.errors import RecordError
from cot2lib.kit import paths, random
from cot2lib.kit.random import Site
from cot2lib.llm import policy, runs
from cot2lib.llm.responses import Plan, Prompts, respond
from cot2lib.llm.settings import SMALL, LanguageRun
from cot2lib.llm.stories import Story
from cot2lib.runs import records
from cot2lib.study import gsm8k_runs, look, show
from cot2lib.study.frame import at, ordered
from cot2lib.study.gsm8k_runs import BESIDE, PAPER_LIMITS, QWEN, SAMPLED, TOKENS, TRAINING, word_problems
from cot2lib.study.printed import stated
from cot2lib.study.report import PERCENT, Text, text
from cot2lib.study.series import told_apart
from cot2lib.thoughts import MTS, Discrete

CLAIMED = {"before": "init", "discrete CoT": "discrete", "MTS": "mts"}  # models, as claims call them
KINDS = {"accuracy": "sampled", "greedy": "greedy"}  # columns of `ends`
MODELS = {SMALL: "small model", QWEN: "Qwen3-0.6B"}
REMEDY = "`cot2 llm train --profile {0} && cot2 collect gsm8k --profile {0}` makes it"


def drawn(wanted: Sequence[LanguageRun], profile: str, stored: bool = False) -> pd.DataFrame:
    """Evaluations of some runs of a profile, with `stored` those of the local store, too; RecordError without any."""
    table = gsm8k_runs.collect(profile) if stored else gsm8k_runs.shipped(profile)
    found = table[table["id"].isin([run.id for run in wanted])]
    if found.empty:
        seeds = ", ".join(map(str, sorted({run.seed for run in word_problems(profile)})))
        missing = f"no run of gsm8k under {profile} with these seeds (of {seeds}) is recorded"
        raise RecordError(f"{missing}; {REMEDY.format(profile)}.")
    return found


def absent(table: pd.DataFrame, wanted: Sequence[LanguageRun], profile: str) -> Text | None:
    """One sentence where runs have no record: how many, and the remedy."""
    lacking = len(wanted) - table["id"].nunique()
    note = f"**Not drawn**: {lacking} of {len(wanted)} runs have no record; {REMEDY.format(profile)}."
    return text(note) if lacking else None


def outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """Right answers (%) and tokens by limit, way of answering, model and seed, of the evaluations of one model.

    The models are the start and those that reward has made of it; the start answers within each limit.
    """
    found = gsm8k_runs.ends(table).rename(columns={"longest": "limit"})
    found["model"] = np.where(found["continuous"] > 0, "MTS", "discrete CoT")
    start = found[found["continuous"] == 0].assign(model="before", length=np.nan)
    parts = [
        rows.assign(answers=how, right=PERCENT * rows[f"{prefix}{column}"])
        for column, how in KINDS.items()
        for rows, prefix in ((found, ""), (start, "start_"))
    ]
    both = pd.concat(parts)[["limit", "answers", "seed", "model", "right", "length"]]
    return both.assign(model=ordered(both["model"], [*CLAIMED]), answers=ordered(both["answers"], [*KINDS.values()]))


def printed(limit: int, model: str, what: str = "") -> float | None:
    """The paper's number of a model at its limit that ours stands for."""
    return stated(f"gsm8k-{BESIDE[limit]}-{CLAIMED[model]}{what}")


def by_limit(table: pd.DataFrame, finding: str = "") -> look.Shown:
    """Accuracy by the limit on a response: as the paper prints it, and what our runs come to, sampled and greedy."""
    name = MODELS[table["model"].iloc[0]]
    rows = pd.DataFrame(product(PAPER_LIMITS, CLAIMED), columns=["limit", "model"])
    parts = {"paper: Qwen3-0.6B, one run each": rows.assign(right=[*starmap(printed, rows.to_numpy())])}
    parts |= {f"ours: {name}, {how}": part for how, part in outcomes(table).groupby("answers", observed=True)}
    data, apart = told_apart(pd.concat([part.assign(panel=title) for title, part in parts.items()]), "model")
    figure, axes = look.panels(1, 3, height=3.3)
    for axis, title in zip(axes[0], parts):
        part = data[data["panel"] == title]
        places = [str(limit) for limit in sorted(part["limit"].unique(), reverse=True)]
        look.seeds(axis, part.assign(place=ordered(part["limit"].astype(str), places)), apart, "place", "right")
        axis.set_title(title, fontsize=9.5)
        axis.set(xlabel="longest response (tokens)", ylabel="right answers (%)", ylim=(0, None))
    look.legend(figure, apart, lines=False)
    return look.Shown(figure, data[["panel", "limit", "model", "seed", "right"]], finding)


def while_training(table: pd.DataFrame) -> look.Shown:
    """Accuracy over training by limit, sampled above and greedy below; thoughts begin at a grey line.

    A model that learns to think is drawn twice below: answering at once, and after its thoughts.
    """
    rows = table[table["decoding"] != TRAINING]
    plain, at_once = rows["continuous"] == 0, rows["decoding"] == TOKENS
    model = np.select([plain, at_once], ["discrete CoT", "MTS, answering at once"], "MTS")
    how = ordered(np.where(rows["decoding"] == SAMPLED, "sampled", "greedy"), [*KINDS.values()])
    limits = ordered(rows["longest"], sorted(rows["longest"].unique(), reverse=True))
    # `curves` draws a row of panels for each "recipe"
    rows = rows.assign(right=PERCENT * rows["accuracy"], model=model, recipe=how, tokens=limits)
    most = rows["longest"].max()
    last = at(rows, decoding=SAMPLED, longest=most, step=rows["step"].max()).groupby("model")["right"].mean()
    ends = " and ".join(f"{mean:.1f} % ({name})" for name, mean in last.items())
    finding = f"Right sampled answers within {most} tokens end at {ends}."
    labels = ("step", "right answers (%)")
    shown = look.curves(rows, "model", "tokens", x="step", y="right", labels=labels, finding=finding)
    for axis in shown.figure.axes:
        axis.axvline(table["step"].max() * table["enter"].iloc[0], color="#bbbbbb", linewidth=1)
    return shown


def limits_table(found: pd.DataFrame) -> pd.DataFrame:
    """`outcomes` by limit and model beside the paper's table, whose limits are others."""
    by = ["limit", "model"]
    table = show.cells(found, by, "answers", "right", show.mean_of, paper=printed)
    after = at(found, answers="sampled").dropna(subset="length")
    length = show.groups(after, by)["length"].agg(show.mean_of, high=np.inf).rename("ours, tokens")
    table = table.join(length, on=by)
    table["paper, tokens"] = [printed(*place, "-length") for place in zip(table["limit"], table["model"])]
    table.insert(1, "the paper's limit", table["limit"].map(BESIDE))
    return table.sort_values("limit", ascending=False, kind="stable")


# What a model answers


def shown_model(when: str, stored: bool = False) -> tuple[nn.Module, Callable]:
    """The model that the chapter shows, "before" or "after" its policy gradients, and its tokenizer.

    With `stored` it comes from the local store and not from what is shipped; RecordError if it is not there, damaged,
    or of another run.
    """
    run = gsm8k_runs.shown()
    model, tokenizer = runs.small(run.start)
    if stored:
        held, path = runs.weights(run)[gsm8k_runs.WHEN.index(when)], paths.store()
    else:
        held, meta, path = records.shipped_tensors(gsm8k_runs.MODELS, f"{when}.")
        if meta.get("run") != run.id:
            raise RecordError(f"{path} holds models of run {meta.get('run')}, not of {run.id}; collect gsm8k again.")
    return runs.put(model, {name: value.float() for name, value in held.items()}, path), tokenizer


def responses(
    model: nn.Module, tokenizer: Callable, told: list[Story], k: int, thoughts: int, limit: int, seed: int
) -> pd.DataFrame:
    """A row for each story: its answer, the tokens of each thought, and the text; greedy but for the thoughts."""
    texts = [story.text for story in told]
    plan = Plan(MTS(k), thoughts, limit, Discrete(), policy.end_tokens(model, tokenizer))
    made = respond(model, Prompts.of(tokenizer, texts), plan, random.run_keys([seed], Site.ROLLOUT))
    drawn = [[]] * len(told) if made.actions is None else made.actions.tolist()  # (response, thought, draw)
    names = lambda tokens: "{" + " ".join(sorted(tokenizer.convert_ids_to_tokens(tokens))) + "}"
    thoughts_told = [" ".join(map(names, each)) for each in drawn]
    columns = {"story": texts, "answer": [story.answer for story in told], "thoughts": thoughts_told}
    return pd.DataFrame(columns | {"written": made.texts(tokenizer)})
