"""The chapter `gsm8k`: accuracy by limit, while training, before and after; what the trained model answers."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from torch import nn

from cot2lib.errors import RecordError
from cot2lib.kit import paths, random
from cot2lib.kit.random import Site
from cot2lib.llm import policy, runs
from cot2lib.llm.policy import Asked, greedy
from cot2lib.llm.responses import Prompts, respond
from cot2lib.llm.settings import SMALL, SMOLLM2, LanguageRun
from cot2lib.llm.stories import Story
from cot2lib.runs import records
from cot2lib.study import gsm8k_runs, show
from cot2lib.study.frame import at, ordered
from cot2lib.study.gsm8k_runs import QWEN, SAMPLED, THOUGHTS, TOKENS
from cot2lib.study.look import Shown, legend, panels, seeds
from cot2lib.study.printed import paper_value
from cot2lib.study.report import PERCENT, Text, bullets
from cot2lib.study.series import told_apart
from cot2lib.thoughts import MTS

PRINTED = {"init": "before", "discrete": "discrete CoT", "mts": "MTS"}  # as claims call them
NAMES = list(PRINTED.values())
KINDS = {"accuracy": "sampled", "greedy": "greedy"}  # columns of `ends`
MODELS = {SMALL: "small model", SMOLLM2: "SmolLM2", QWEN: "Qwen3-0.6B"}


def drawn(wanted: Sequence[LanguageRun], profile: str, stored: bool = False) -> pd.DataFrame:
    """Evaluations of some runs of a profile.

    Args:
        wanted: the runs.
        profile: theirs.
        stored: whether those of the local store count too.

    Raises:
        RecordError: if none of them has a record.
    """
    table = gsm8k_runs.collect(profile) if stored else gsm8k_runs.shipped(profile)
    found = table[table["id"].isin([run.id for run in wanted])]
    if found.empty:
        seeds = ", ".join(map(str, sorted({run.seed for run in gsm8k_runs.word_problems(profile)})))
        raise RecordError(
            f"no run of gsm8k under {profile} with these seeds (of {seeds}) is recorded; {_made(profile)}."
        )
    return found


def _made(profile: str) -> str:
    return f"`cot2 llm train --profile {profile} && cot2 collect gsm8k --profile {profile}` makes it"


def absent(table: pd.DataFrame, wanted: Sequence[LanguageRun], profile: str) -> Text | None:
    """One sentence where runs have no record: how many, and the remedy."""
    lacking = len(wanted) - table["id"].nunique()
    said = f"**Not drawn**: {lacking} of {len(wanted)} runs have no record; {_made(profile)}."
    return bullets([said]) if lacking else None


def outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """Right answers (%) and tokens by limit, way of answering, model and seed, of the evaluations of one model.

    The models are the start and those that reward has made of it; the start answers within each limit.
    """
    found = gsm8k_runs.ends(table).rename(columns={"longest": "limit"})
    found["model"] = np.where(found["continuous"] > 0, "MTS", "discrete CoT")
    start = found[found["continuous"] == 0].assign(model="before")
    parts = [
        rows.assign(answers=how, right=PERCENT * rows[f"{prefix}{column}"])
        for column, how in KINDS.items()
        for rows, prefix in ((found, ""), (start, "start_"))
    ]
    both = pd.concat(parts)[["limit", "answers", "seed", "model", "right", "length"]]
    return both.assign(model=ordered(both["model"], NAMES), answers=ordered(both["answers"], [*KINDS.values()]))


def by_limit(table: pd.DataFrame, limits: Sequence[int], name: str, finding: str = "") -> Shown:
    """Accuracy by the limit on a response: as the paper prints it, and what our runs come to, sampled and greedy.

    `table` is of `gsm8k_runs.shipped`, of one model that is called `name`; `limits` are the paper's.
    """
    rows = [(limit, who, paper_value(f"gsm8k-{limit}-{name}")) for limit in limits for name, who in PRINTED.items()]
    printed = pd.DataFrame(rows, columns=["limit", "model", "right"])
    parts = {"paper: Qwen3-0.6B, one run": printed.assign(model=ordered(printed["model"], NAMES))}
    parts |= {f"ours: {name}, {how}": part for how, part in outcomes(table).groupby("answers", observed=True)}
    data, apart = told_apart(pd.concat([part.assign(panel=title) for title, part in parts.items()]), "model")
    figure, axes = panels(1, 3, height=3.3)
    for axis, title in zip(axes[0], parts):
        part = data[data["panel"] == title]
        places = [str(limit) for limit in sorted(part["limit"].unique(), reverse=True)]
        seeds(axis, part.assign(place=ordered(part["limit"].astype(str), places)), apart, "place", "right")
        axis.set_title(title, fontsize=9.5)
        axis.set(xlabel="longest response (tokens)", ylabel="right answers (%)", ylim=(0, None))
    legend(figure, apart, lines=False)
    return Shown(figure, data[["panel", "limit", "model", "seed", "right"]], finding)


def while_training(table: pd.DataFrame) -> Shown | None:
    """Accuracy over training by limit, sampled above and greedy below; a thin line is a seed, a thick one the mean.

    A model that learns to think is drawn twice below: answering at once, and after its thoughts. None without runs.
    """
    if table.empty:
        return None
    data, apart = told_apart(answering(table), "model")
    limits = sorted(data["limit"].unique(), reverse=True)
    figure, axes = panels(2, len(limits), height=2.5, sharey=True, sharex=True)
    for axis, (how, limit) in zip(axes.flat, product(KINDS.values(), limits)):
        lines(axis, at(data, answers=how, limit=limit), apart)
        axis.axvline(table["step"].max() * table["enter"].iloc[0], color="#bbbbbb", linewidth=1)
        axis.set(xlabel="step", ylabel=f"right, {how} (%)")
    for axis, limit in zip(axes[0], limits):
        axis.set_title(f"{limit} tokens", fontsize=9.5)
    legend(figure, apart)
    last = at(data, step=data["step"].max(), limit=limits[0], answers=KINDS["accuracy"])
    means = last.groupby("model", observed=True)["right"].mean()
    told = " and ".join(f"those of {name} {mean:.1f} %" for name, mean in means.items())
    finding = f"At the end, within {limits[0]} tokens, sampled answers are right: {told}."
    return Shown(figure, data[["answers", "limit", "model", "seed", "step", "right"]], finding)


def answering(table: pd.DataFrame) -> pd.DataFrame:
    """Right answers (%) over steps, by way of answering and model; one that thinks is also asked to answer at once."""
    plain, thinks = table[table["continuous"] == 0], table[table["continuous"] > 0]
    parts = [
        at(plain, decoding=SAMPLED).assign(answers="sampled", model="discrete CoT"),
        at(thinks, decoding=SAMPLED).assign(answers="sampled", model="MTS"),
        at(plain, decoding=TOKENS).assign(answers="greedy", model="discrete CoT"),
        at(thinks, decoding=THOUGHTS).assign(answers="greedy", model="MTS"),
        at(thinks, decoding=TOKENS).assign(answers="greedy", model="MTS, asked to answer at once"),
    ]
    return pd.concat(parts).rename(columns={"longest": "limit"}).eval("right = 100 * accuracy")


def lines(axis: Axes, data: pd.DataFrame, apart: Mapping) -> None:
    """A line for each seed over steps, and the mean of each series."""
    options = {name: apart[name] for name in ("hue", "hue_order", "palette")}
    options |= dict(x="step", y="right", legend=False, ax=axis)
    sns.lineplot(data, units="seed", estimator=None, linewidth=0.7, alpha=0.5, **options)
    looks = dict(style="series", style_order=apart["hue_order"], dashes=apart["dashes"], markers=apart["markers"])
    sns.lineplot(data, errorbar=None, markersize=4, **options, **looks)


def limits_table(table: pd.DataFrame, beside: Mapping[int, int]) -> pd.DataFrame:
    """The paper's table under ours, a column for each limit from the longest to the shortest.

    Args:
        table: of `gsm8k_runs.shipped`, of one model.
        beside: for each of our limits the paper's that it stands for.
    """
    found = outcomes(table)
    right = show.groups(found, ["limit", "answers", "model"])["right"].agg(show.mean_of).unstack(["answers", "model"])
    right.columns = [f"{model}, {how}" for how, model in right.columns]
    after = found[(found["answers"] == "sampled") & (found["model"] != "before")]
    length = show.groups(after, ["limit", "model"])["length"].agg(show.mean_of, high=np.inf)
    ours = right.join(length.unstack().rename(columns="tokens, {}".format))
    ours.insert(0, "runs", found.groupby("limit")["seed"].nunique())
    ours = ours.loc[[limit for limit in beside if limit in right.index]].reset_index()
    ours["paper: limit"] = ours["limit"].map(beside)
    claims = {f"paper: {shown}": name for name, shown in PRINTED.items()}
    claims |= {f"paper: tokens, {PRINTED[name]}": f"{name}-length" for name in ("discrete", "mts")}
    for head, name in claims.items():
        ours[head] = [paper_value(f"gsm8k-{limit}-{name}") for limit in ours["paper: limit"]]
    return ours.set_index("limit").T.rename_axis(columns=None).reset_index(names="limit")


def gains(table: pd.DataFrame) -> pd.DataFrame:
    """By way of answering and limit, in points: what reward gives either method, and MTS less discrete CoT."""
    found = outcomes(table)
    pairs = {"discrete": ("discrete CoT", "before"), "mts": ("MTS", "before"), "between": ("MTS", "discrete CoT")}
    parts = [
        show.gaps(found, ["answers", "limit"], "model", *sides, value="right").assign(pair=pair)
        for pair, sides in pairs.items()
    ]
    return pd.concat(parts, ignore_index=True)


def gains_table(table: pd.DataFrame) -> pd.DataFrame:
    """Gains in points, mean over seeds with its interval, by way of answering and limit, the longest first."""
    heads = {"discrete": "discrete CoT gains", "mts": "MTS gains", "between": "MTS above it"}
    made = gains(table)
    made["shown"] = [show.describe(*ends) for ends in zip(made["mean"], made["low"], made["high"])]
    wide = made.pivot(index=["answers", "limit"], columns="pair", values="shown")[[*heads]].rename(columns=heads)
    return wide.reset_index().sort_values(["answers", "limit"], ascending=[True, False])


def findings(table: pd.DataFrame) -> list[str]:
    """A sentence for each limit on sampled answers: what reward gives, and how MTS ends beside discrete CoT."""
    made = at(gains(table), answers="sampled").set_index(["limit", "pair"])
    sentences = []
    for limit in sorted(set(made.index.get_level_values("limit")), reverse=True):
        discrete, mts, between = (made.loc[(limit, pair)] for pair in ("discrete", "mts", "between"))
        sentences.append(
            f"{limit} tokens: after reward discrete chain of thought is {discrete['told']} its start, and MTS is "
            f"{mts['told']} its own. MTS ends {between['told']} discrete chain of thought, and above it on "
            f"{between['ahead']} of {between['n']} seeds."
        )
    return sentences


# What a model answers


def shown_model(when: str, stored: bool = False) -> tuple[nn.Module, Callable]:
    """The model that the chapter shows, "before" or "after" its policy gradients, and its tokenizer.

    Args:
        when: which.
        stored: take it from the local store and not from what is shipped.

    Raises:
        RecordError: if it is not there, damaged, or of another run.
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
    asked = Asked.of(told)
    plan = greedy(MTS(k), thoughts, limit, policy.end_tokens(model, tokenizer))
    made = respond(model, Prompts.of(tokenizer, asked.texts), plan, random.run_keys([seed], Site.ROLLOUT))
    drawn = [[]] * len(told) if made.actions is None else made.actions.tolist()  # (response, thought, draw)
    names = lambda tokens: "{" + " ".join(sorted(tokenizer.convert_ids_to_tokens(tokens))) + "}"
    thoughts_told = [" ".join(map(names, each)) for each in drawn]
    columns = {"story": asked.texts, "answer": asked.answers, "thoughts": thoughts_told}
    return pd.DataFrame(columns | {"written": made.texts(tokenizer)})


def responses_table(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Stories with both responses, of `responses`."""
    shown = {"before": before["written"], "thoughts after": after["thoughts"], "after": after["written"]}
    code = pd.DataFrame(shown).map(lambda text: f"`{text}`" if text else "")
    return before[["story", "answer"]].join(code)
