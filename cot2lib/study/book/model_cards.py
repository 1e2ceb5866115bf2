"""Model cards: for each file of shipped weights a page beside it, with its numbers from the records.

`make results` writes them. A card begins as the Hugging Face hub reads it.
"""

import json
from collections.abc import Sequence

import pandas as pd

from cot2lib import runs
from cot2lib.kit import paths
from cot2lib.kit.files import load_meta
from cot2lib.runs import manifest, records
from cot2lib.runs.plan import parameters
from cot2lib.runs.records import WEIGHTS
from cot2lib.specs import Run, from_data
from cot2lib.study.gsm8k.measure import MODELS, TRAINING, shipped
from cot2lib.study.report import PERCENT, recipe
from cot2lib.study.samples import hours

HEAD = """---
license: mit
library_name: cot2lib
tags: [chain-of-thought, continuous-thoughts, reproducibility]
---
"""
LIMITS = (
    "These models are small and answer one kind of made-up question. They were trained to compare methods, and not to "
    "be used for anything else. Runs of one setting may end far apart, which a mean hides."
)
SETTING = ["task", "method", "layers", "heads", "d_model"]


def cards() -> dict[str, str]:
    """The cards of all shipped files of weights, by file name.

    Raises:
        RecordError: for a file that is damaged.
    """
    listed = manifest.listed(paths.records())
    made = {card_name(name): _of_runs(name) for name in listed if name.endswith(f".{WEIGHTS}")}
    language = f"{MODELS}.safetensors"
    return made | ({card_name(language): _of_language(language)} if language in listed else {})


def card_name(weights: str) -> str:
    """The file of the card of a file of weights."""
    return f"{weights.removesuffix('.safetensors')}.md"


def _of_runs(name: str) -> str:
    chapter, profile, _ = name.split(".", 2)
    path, _ = manifest.content(paths.records(), name)
    ids = load_meta(path)["runs"]
    rows = records.shipped_runs().set_index("id").loc[ids].reset_index()
    specs = [from_data(json.loads(text)) for text in rows["spec"]]
    made = "; ".join(sorted({f"{row.device}, torch {row.torch}" for row in rows.itertuples()}))
    return _card(
        f"Models of the chapter {chapter}, {recipe(profile)}",
        f"{len(ids)} GPT-2s of {_sizes(specs)} parameters, trained from nothing by `cot2 run {chapter} --profile "
        f"{profile}`. The file is `{name}` (sha256 `{manifest.listed(paths.records())[name]}`); tensors are named "
        "`<run>.<name of GPT2LMHeadModel>`.",
        _table(runs.by_profile({profile: specs})[0]),
        "Accuracy is the share of right answers on inputs held out from training, at the last step. Each seed has a "
        f"split of its own unless the run says otherwise. Training took {hours(rows).sum():.1f} core-hours ({made}).",
        f"```python\nimport cot2lib\nfrom cot2lib.study.book.all_runs import sweep\n\n"
        f'run = next(run for run in sweep("{chapter}", "{profile}") if run.id == "{ids[0]}")\n'
        'model = cot2lib.load(run, missing="error")  # model.to_hf(0) for transformers\n```',
    )


def _sizes(specs: Sequence[Run]) -> str:
    counts = sorted({parameters(spec) for spec in specs})
    return f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"


def _table(rows: pd.DataFrame) -> str:
    """A row for each setting: how many models, and their accuracies."""
    found = (PERCENT * rows.set_index(SETTING)["last"]).groupby(level=SETTING, observed=True)
    told = found.agg(["size", "mean", "min", "max"]).round(1).reset_index()
    return _markdown(told.set_axis([*SETTING, "models", "accuracy (%)", "lowest", "highest"], axis=1))


def _markdown(table: pd.DataFrame) -> str:
    lines = [list(table.columns), ["---"] * table.shape[1], *table.astype(str).to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _of_language(name: str) -> str:
    """The card of the language model that the chapter on word problems shows."""
    path, _ = manifest.content(paths.records(), name)
    run = load_meta(path)["run"]
    rows = shipped("quick")
    rows = rows[(rows["id"] == run) & (rows["decoding"] != TRAINING)]
    ends = rows[rows["step"].isin([rows["step"].min(), rows["step"].max()])]
    table = ends[["step", "decoding", "accuracy", "length"]].assign(accuracy=(PERCENT * ends["accuracy"]).round(1))
    return _card(
        "A small language model that thinks before it writes",
        f"One model before and after policy gradients (run `{run}`, {rows['method'].iloc[0]}), trained on made-up "
        f"stories of sums. The file is `{name}` (sha256 `{manifest.listed(paths.records())[name]}`), in half "
        "precision; tensors are named `before.<name>` and `after.<name>`.",
        _markdown(table.assign(length=table["length"].round(1))),
        f"Accuracy is the share of right answers (%) on stories that training did not show. Reward took "
        f"{rows['seconds'].iloc[0] / 3600:.2f} hours on one core of {rows['device'].iloc[0]}.",
        "```python\nfrom cot2lib.study.gsm8k.measure import shown_model\n\n"
        'model, tokenizer = shown_model("after")\n```',
    )


def _card(title: str, what: str, table: str, measured: str, use: str) -> str:
    parts = [f"# {title}", what, "## Results", table, measured, "## Use", use, "## Limits", LIMITS, "## Licence"]
    cite = "MIT, as the repository. Cite `CITATION.cff`. No personal data and no data of others went into training."
    return HEAD + "\n" + "\n\n".join([*parts, cite]) + "\n"
