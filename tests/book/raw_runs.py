"""What `freeze_ledger` measures: shipped runs and tables read by plain pandas, the task counted by hand.

Nothing here imports cot2lib.
"""

import itertools
import json
import lzma
import math
import random
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

STUDY = Path(__file__).parents[2] / "cot2lib" / "study"
SEEDS = range(42, 62)

# Runs by what their JSON says beyond the defaults. What a recipe fixes for all its runs is left out.
FIXED = ("batch", "dropout", "evaluate_every", "schedule", "steps", "warmup", "weight_decay", "cycles")
OURS = {"batch": 32, "schedule": "cosine", "steps": 20_000, "warmup": 1000}  # our recipe's on graphs; no dropout
FORMAT = ("arrow", "eos", "loss_on", "reduction", "ties")
RATE = {"paper": 1e-4, "quick": 3e-3}
POLICY_RATES = {
    "paper": {"mts": 5e-5, "high": 5e-4, "dirichlet": 1e-5, "cot2": 1e-6},
    "quick": {"mts": 3e-4, "high": 3e-3, "dirichlet": 6e-5, "cot2": 6e-6},
}
DISCRETE = {"supervision.budget": 1, "thought.kind": "Discrete"}
SLOT = {"supervision.budget": 1, "supervision.feeding": "stages", "thought.kind": "ZeroSlot"}
HIDDEN = SLOT | {"thought.kind": "Hidden"}
GRAPHS = ("ProsQA", "ProntoQA")
NO_COT = {"supervision.every": None}
COSINE, FROZEN_COSINE = {"model.embedding": "cosine"}, {"model.embedding": "cosine, frozen"}


def size(d=32, layers=2):
    """Conditions on a model's size, as many heads as layers; defaults are not written in the JSON."""
    written = {"model.d_model": (d, 32), "model.layers": (layers, 2), "model.heads": (layers, 2)}
    return {name: value for name, (value, default) in written.items() if value != default}


def flat(spec, prefix=""):
    """The leaves of a spec's JSON by dotted path."""
    leaves = {}
    for name, value in spec.items():
        if isinstance(value, dict):
            leaves |= flat(value, f"{prefix}{name}.")
        elif name != "kind" or prefix.endswith("thought.") or value in GRAPHS:
            leaves[prefix + name] = value
    return leaves


def told_apart(spec):
    """What tells a run from others of its recipe; of a policy gradient's dropout also, on graphs a changed recipe."""
    policy = spec["kind"] == "GRPOSpec"
    known = {f"{at}recipe.{name}" for at in ("", "start.") for name in FIXED}
    known |= {f"{at}supervision.{name}" for at in ("", "start.") for name in FORMAT} | {"seed", "start.seed"}
    asked = {
        name: v for name, v in flat(spec).items() if name not in known - ({"recipe.dropout"} if policy else set())
    }
    if spec.get("task", {}).get("kind") in GRAPHS and "weight_decay" not in spec["recipe"]:
        fixed = {name: spec["recipe"][name] for name in (*OURS, "dropout") if name in spec["recipe"]}
        asked |= {"recipe": fixed} if fixed != OURS else {}
    return asked


def unpacked(content):
    """A table of curves: each column's steps from number to number, low bytes first, the sign in the last bit."""
    first, body = lzma.decompress(content).split(b"\n", 1)
    head = json.loads(first)
    table = {}
    for place, name in enumerate(["id", *head["columns"]]):
        planes = np.frombuffer(body, np.uint8).reshape(-1, 8, head["points"])[place].astype(object)
        zigzag = sum(plane << 8 * at for at, plane in enumerate(planes))
        column = list(itertools.accumulate(-((n + 1) // 2) if n % 2 else n // 2 for n in zigzag))
        if name == "id":
            column = [head["ids"][n] for n in column]
        elif head["columns"][name] == "decimal":
            column = [math.nan if n == -(2**53) else n / 100_000 for n in column]
        table[name] = column
    return pd.DataFrame(table)


@cache
def runs():
    """Every shipped run: its id, seed, conditions, row and curve."""
    found = {}
    for path in sorted((STUDY / "records").glob("*.runs.csv")):
        packed = Path(str(path).replace(".runs.csv", ".curves.xz"))
        curves = unpacked(packed.read_bytes()).sort_values("step", kind="stable")
        by_id = dict(iter(curves.groupby("id")))
        for row in pd.read_csv(path).to_dict("records"):
            spec = json.loads(row["spec"])
            seed = spec.get("seed", spec.get("start", {}).get("seed", 42))
            found[row["id"]] = dict(id=row["id"], seed=seed, asked=told_apart(spec), row=row, curve=by_id[row["id"]])
    return found


def select(asked):
    """The run of each seed whose conditions are exactly these."""
    chosen = [run for run in runs().values() if run["asked"] == asked and run["seed"] in SEEDS]
    assert len({run["seed"] for run in chosen}) == len(chosen), asked
    return {run["seed"]: run for run in sorted(chosen, key=lambda run: run["seed"])}


def supervised(*conditions):
    """Supervised runs: a function from the profile to runs by seed."""
    merged = {name: value for part in conditions for name, value in part.items()}
    return lambda profile: select(merged | {"recipe.lr": RATE[profile]})


def on_graphs(task, *conditions, d=32):
    """Supervised runs of four layers on questions about graphs; recipes differ in heads and embeddings."""
    asked = {name: value for part in conditions for name, value in part.items()}
    asked |= {f"task.{name}": value for name, value in task.items()} | {"model.layers": 4}
    asked |= {} if d == 32 else {"model.d_model": d}
    own = {"paper": {"model.heads": 4}, "quick": {"model.embedding_sd": 0.15}}
    return lambda profile: select(asked | own[profile] | {"recipe.lr": RATE[profile]})


def on_graph_policy(task, k, start):
    """MTS of K tokens from our recipe's model."""
    asked = {f"start.{name}": value for name, value in start.items()}
    asked |= {f"start.task.{name}": value for name, value in task.items()}
    asked |= {"start.model.layers": 4, "start.model.embedding_sd": 0.15, "start.recipe.lr": RATE["quick"]}
    asked |= {"thought.kind": "MTS", "thought.k": k}
    rates = {"paper": 1e-6 if k == 6 else 1e-5, "quick": 1e-4}
    return lambda profile: select(asked | {"recipe.lr": rates[profile]})


def once(*conditions):
    """As `supervised`, every run on the split of seed 42, which the paper's single runs have."""
    return _first_and(supervised(*conditions), supervised(*conditions, {"split": 42}))


def _first_and(usual, others):
    return lambda profile: {seed: run for seed, run in usual(profile).items() if seed == 42} | others(profile)


def policy_once(rule, *given, **options):
    """As `rule`, every start on the split of seed 42."""
    return _first_and(rule(*given, **options), rule(*given, **options | {"start.split": 42}))


def policy(thought, rate, start=DISCRETE, d=24, layers=1, **options):
    """Policy gradients from starts that the authors' recipe trained."""
    begun = {f"start.{name}": value for name, value in (start | size(d, layers)).items()}
    begun["start.recipe.lr"] = RATE["paper"]
    thoughts = {f"thought.{name}": value for name, value in thought.items()}
    return lambda profile: select(begun | thoughts | options | {"recipe.lr": POLICY_RATES[profile][rate]})


def mts(k, d=24, rate="mts", **options):
    return policy({"kind": "MTS", "k": k}, rate, d=d, **options)


def dirichlet(gamma, rate="dirichlet", **options):
    untreated = options.pop("untreated", {})
    return policy({"kind": "Dirichlet", "gamma": float(gamma)} | untreated, rate, ratio="product", **options)


# Measures of one run


last = lambda run: shares(run)[-1]
best = lambda run: shares(run).max()
first_right = lambda run: shares(run)[0]
mean = lambda run: shares(run).mean()
lost = lambda run: best(run) - last(run)
base_before = lambda run: shares(run, "base")[0]
base_best = lambda run: shares(run, "base").max()
base_lost = lambda run: base_best(run) - base_last(run)
base_last = lambda run: shares(run, "base")[-1]
base_split_half = lambda run: split_half(run, "base")
hours = lambda run: run["row"]["seconds"] * run["row"]["threads"] / 3600
inputs = lambda run: run["row"]["inputs_a"] + run["row"]["inputs_b"]


def shares(run, kind="correct"):
    """Right answers (%) at every evaluation."""
    return 100 * ((run["curve"][f"{kind}_a"] + run["curve"][f"{kind}_b"]) / inputs(run)).to_numpy()


def split_half(run, kind="correct"):
    """Each half at the evaluations that are best on the other half, of which tied ones count alike."""
    a, b = run["curve"][f"{kind}_a"].tolist(), run["curve"][f"{kind}_b"].tolist()
    right_b = [y for x, y in zip(a, b) if x == max(a)]
    right_a = [x for x, y in zip(a, b) if y == max(b)]
    return 100 * (sum(right_b) / len(right_b) + sum(right_a) / len(right_a)) / inputs(run)


def entropy(step, place=-1):
    """Entropy of a step at the last evaluation, or at the one before any step (place 0)."""
    return lambda run: run["curve"][f"entropy_{step}"].to_numpy()[place]


# Tables of their own


@cache
def table(name):
    paths = [STUDY / "records" / f"{name}.{ending}" for ending in ("csv", "csv.xz")]
    return next((pd.read_csv(path) for path in paths if path.exists()), None)


def held(runs_of, step, when):
    """Step entropy under base decoding of policy-gradient runs, by seed."""

    def values(profile):
        known = table(f"thoughts.{profile}.contents")
        if known is None:
            return {}
        known = known[(known["when"] == when) & (known["step"] == step)].set_index("id")["base_entropy"]
        return {seed: known[run["id"]] for seed, run in runs_of(profile).items() if run["id"] in known.index}

    return values


def passed(method, temperature, k, models=supervised):
    """Pass@k (%) of the small models, by seed: CoT2 from all tokens, discrete from the top 50."""
    top = 50 if method is DISCRETE and temperature else 0

    def values(profile):
        known = table(f"sampling.{profile}.passk")
        at = (known["temperature"].round(6) == temperature) & (known["k"] == k) & (known["top_k"] == top)
        by_id = known[at].set_index("id")["pass_at_k"]
        chosen = models(method, size(24, 1))(profile)
        return {seed: by_id[run["id"]] for seed, run in chosen.items() if run["id"] in by_id.index}

    return values


def voted(runs_of, temperature, k, column):
    """Maj@k or Pass@k (%) on graphs, by seed; nothing where nothing was counted."""

    def values(profile):
        known = table(f"votes.{profile}.majority")
        if known is None:
            return {}
        at = (known["temperature"].round(6) == temperature) & (known["k"] == k)
        by_id = known[at].set_index("id")[column]
        return {seed: by_id[run["id"]] for seed, run in runs_of(profile).items() if run["id"] in by_id.index}

    return values


def block(feed, lr):
    """Accuracy (%) of the construction's trained block at its last step, by seed."""

    def values(profile):
        known = table(f"experts.{profile}.training")
        if known is None:
            return {}
        known = known[(known["feed"] == feed) & (known["lr"].round(9) == lr)].sort_values("step")
        return {seed: 100 * part["accuracy"].iloc[-1] for seed, part in known.groupby("seed") if seed in SEEDS}

    return values


def of(runs_of, measure):
    """Values by seed."""
    return lambda profile: {seed: measure(run) for seed, run in runs_of(profile).items()}


# The task, counted by hand


@cache
def validation(seed):
    """Held-out inputs of four digits 1-9: 20 % of the multisets of digits, in the public code's order."""
    rows = list(itertools.product(range(1, 10), repeat=4))
    kinds = list(dict.fromkeys(tuple(sorted(row)) for row in rows))
    order = list(range(len(kinds)))
    random.Random(seed).shuffle(order)
    train = {kinds[place] for place in order[: int(0.8 * len(order))]}
    return [row for row in rows if tuple(sorted(row)) not in train]


@cache
def exact_entropy(seed, step):
    """Mean entropy of the 2^step equally likely partial sums."""
    values = []
    for row in validation(seed):
        sums = [sum(s * d for s, d in zip(signs, row)) for signs in itertools.product((-1, 1), repeat=step)]
        shares = np.unique(sums, return_counts=True)[1] / len(sums)
        values.append(-(shares * np.log(shares)).sum())
    return float(np.mean(values))


def away(step, uniform):
    """A probe's entropy less t ln 2, or less the exact one."""

    def values(profile):
        to = lambda seed: step * math.log(2) if uniform else exact_entropy(seed, step)
        return {s: entropy(step)(run) - to(s) for s, run in supervised(size(32, 1))(profile).items()}

    return values


def three_smallest():
    """Share (%) of five digits 11-19 whose answer is the three smallest minus the two largest."""
    signs, right = np.array(list(itertools.product((-1, 1), repeat=5))), 0
    for row in itertools.product(range(11, 20), repeat=5):
        sums = signs @ np.array(row)
        ordered = sorted(row)
        right += sums[sums >= 0].min() == sum(ordered[:3]) - sum(ordered[3:])
    return 100 * right / 9**5
