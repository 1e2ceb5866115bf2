"""Continuous chain of thought (CoT2) on one page: a task, a GPT-2, training by supervision and by reward.

    python cot2.py             train CoT2 and discrete chain of thought, and compare them
    python cot2.py --reward    reward a discrete model that thinks in means of three sampled tokens (GRPO)

A model that thinks in words commits to one token at each step. CoT2 feeds itself the mixture z = sum_i p_i E_i of all
token embeddings E_i instead, weighted by its own next-token probabilities p: one thought can carry many candidates.

The task is the minimum non-negative sum: sign the digits of 2 1 4 3 so that the total is the smallest one from 0 up. A
chain of thought lists the partial sums. The first sign of a discrete chain depends on all digits to come.
"""

import argparse
import itertools
import math
import random

import torch
from torch import nn
from torch.nn import functional as F

BOS, ARROW, DIGIT = 1, 3, 6  # token ids as in the authors' code: six special tokens, the digits 0..9, then the sums
PAPER = {16: (55.27, 55.48), 24: (96.56, 70.43), 32: (98.94, 84.92)}  # d: the paper's accuracies of CoT2, discrete


class Sums:
    """The task on all inputs of m digits 1..9, as prompts `<BOS> d ... d ->`."""

    def __init__(self, m: int = 4):
        self.m, self.zero = m, DIGIT + 10 + 9 * m  # `zero` is the token of the sum 0
        self.vocab, self.positions = self.zero + 9 * m + 1, 2 * m + 3
        self.digits = torch.tensor(list(itertools.product(range(1, 10), repeat=m)))  # (input, m)
        self.prompts = F.pad(F.pad(DIGIT + self.digits, (1, 0), value=BOS), (0, 1), value=ARROW)  # (input, m + 2)
        self.answers = self.targets(1)[:, -1].argmax(-1)  # (input,)

    def split(self, seed: int, by: str = "code"):
        """Rows to train on (80 %) and rows held out; the authors' code keeps all orders of some digits together."""
        keys = [tuple(sorted(row) if by == "code" else row) for row in self.digits.tolist()]
        groups = list(dict.fromkeys(keys))
        random.Random(seed).shuffle(groups)
        chosen = set(groups[: int(0.8 * len(groups))])
        mask = torch.tensor([key in chosen for key in keys])
        return mask.nonzero()[:, 0], (~mask).nonzero()[:, 0]

    def targets(self, budget: int) -> torch.Tensor:
        """What step t should say, (input, step, token): the share of the `budget` best trajectories in each sum, where
        hindsight says which end best. With budget 1 a step is one token: discrete chain of thought."""
        signs = torch.tensor(list(itertools.product((-1, 1), repeat=self.m)))  # (trajectory, m)
        signs = signs.flip(0) if budget == 1 else signs  # decides among equally good ones, as in the authors' code
        sums = (signs * self.digits[:, None]).cumsum(-1)  # (input, trajectory, step)
        rank = 2 * sums[..., -1].abs() + (sums[..., -1] < 0)  # the smallest |sum| first, and 3 before -3
        best = rank.sort(dim=1, stable=True).indices[:, :budget, None].expand(-1, -1, self.m)
        tokens = self.zero + sums.gather(1, best).transpose(1, 2)  # (input, step, trajectory)
        tokens[:, -1] = tokens[:, -1, :1]  # the last step is the answer, with every budget
        shares = torch.full(tokens.shape, 1 / tokens.shape[2])
        return torch.zeros(len(sums), self.m, self.vocab).scatter_add(2, tokens, shares)


class Block(nn.Module):
    """A transformer block of GPT-2: causal attention, then an MLP."""

    def __init__(self, d: int, heads: int):
        super().__init__()
        self.heads, self.ln_1, self.ln_2 = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn_in, self.attn_out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp_in, self.mlp_out = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        split = self.attn_in(self.ln_1(x)).unflatten(-1, (3, self.heads, -1))  # (batch, position, 3, head, d / heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2)
        x = x + self.attn_out(mixed.flatten(2))
        return x + self.mlp_out(F.gelu(self.mlp_in(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """Embeddings in, next-token logits out: a thought is an embedding, and need not be a token's."""

    def __init__(self, vocab: int, positions: int, d: int = 32, layers: int = 2, heads: int = 2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(positions, d)
        self.blocks, self.ln_f = nn.Sequential(*(Block(d, heads) for _ in range(layers))), nn.LayerNorm(d)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:  # GPT-2's initialisation: what is added to the stream starts smaller
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * layers) if "_out" in name else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    def forward(self, x):  # (batch, position, d) -> (batch, position, token)
        return self.ln_f(self.blocks(x + self.wpe.weight[: x.shape[1]])) @ self.wte.weight.T


def log_likelihood(model, prompts, thoughts):
    """sum_i thought_i log p_i of every step, (batch, step), if the model is fed the thoughts before it: mixtures of
    tokens, (batch, step, token), the answer in the last place. All are known, so one pass does all steps."""
    fed = thoughts[:, :-1] @ model.wte.weight  # (batch, step - 1, d): z = sum_i thought_i E_i, and E takes gradients
    logits = model(torch.cat([model.wte(prompts), fed], dim=1))[:, prompts.shape[1] - 1 :]  # (batch, step, token)
    return (thoughts * logits.log_softmax(-1)).sum(-1)


def next_thought(logits, rule):
    """What is fed next, (batch, token). The rule "base" feeds the model's whole distribution: CoT2. "discrete" feeds
    its likeliest token. A number K feeds the mean of K tokens drawn from it: multi-token sampling, MTS."""
    weights = logits.softmax(-1)
    if rule == "base":
        return weights
    tokens = logits.argmax(-1, keepdim=True) if rule == "discrete" else weights.multinomial(rule, replacement=True)
    return F.one_hot(tokens, logits.shape[-1]).float().mean(1)


@torch.no_grad()
def think(model, prompts, steps: int, rule, answer="discrete"):
    """Let the model feed itself its own thoughts; they and, in the last place, its answer, (batch, step, token)."""
    x, thoughts = model.wte(prompts), []
    for step in range(steps):
        thoughts.append(next_thought(model(x)[:, -1], answer if step == steps - 1 else rule))
        x = torch.cat([x, thoughts[-1][:, None] @ model.wte.weight], dim=1)
    return torch.stack(thoughts, dim=1)


def accuracy(model, task: Sums, rows, rule) -> float:
    """Right answers (%) of a model that feeds itself."""
    answers = think(model, task.prompts[rows], task.m, rule)[:, -1].argmax(-1)
    return 100 * (answers == task.answers[rows]).float().mean().item()


def train(task: Sums, budget: int, rows, held_out, steps=8200, batch=64, lr=3e-3, **shape):
    """Continuous supervised fine-tuning (CSFT) on some rows; the model, and its curve of held-out accuracy."""
    model, targets = GPT2(task.vocab, task.positions, **shape), task.targets(budget)
    optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0.0, fused=True)
    rule, curve = "discrete" if budget == 1 else "base", []
    for step in range(1, steps + 1):  # the rate warms up over 100 steps and falls to zero along a cosine
        optimizer.param_groups[0]["lr"] = lr * min(step / 100, 1) * (1 + math.cos(math.pi * step / steps)) / 2
        index = rows[torch.randint(len(rows), (batch,))]
        loss = -log_likelihood(model, task.prompts[index], targets[index]).sum(1).mean()  # a cross-entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % max(1, steps // 20) == 0:
            curve.append((step, accuracy(model, task, held_out, rule)))
            print(f"{rule}, step {step}: loss {loss:.2f}, {curve[-1][1]:.1f} % of held-out inputs right")
    return model, curve


def grpo_loss(new, old, rewards, clip: float = 0.1):
    """The clipped surrogate of GRPO, to be minimised. `new` and `old` (trace, step) are log-likelihoods of what was
    drawn, under the weights now and those that drew it; `rewards` (prompt, trace) are compared within a prompt."""
    spread = rewards.std(-1, correction=0, keepdim=True).clamp(min=1e-12)
    advantages = ((rewards - rewards.mean(-1, keepdim=True)) / spread).view(-1, 1)  # (trace, 1)
    ratio = (new - old).exp()  # of K tokens the geometric mean, since a thought weighs each by 1/K
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages).mean()


def reward(model, task: Sums, rows, k=3, steps=1640, batch=64, group=8, lr=3e-4):
    """Train on by GRPO: sample `group` traces of every prompt, and reward right answers alone."""
    optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0.01, fused=True)
    for step in range(1, steps + 1):
        index = rows[torch.randint(len(rows), (batch,))].repeat_interleave(group)  # (trace,)
        thoughts = think(model, task.prompts[index], task.m, rule=k, answer=1)
        rewards = (thoughts[:, -1].argmax(-1) == task.answers[index]).float().view(batch, group)
        new = log_likelihood(model, task.prompts[index], thoughts)
        loss = grpo_loss(new, new.detach(), rewards)  # one update a batch: the ratio is 1, its gradient is not 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % max(1, steps // 20) == 0:
            print(f"reward, step {step}: {100 * rewards.mean():.1f} % of the traces right")


def main():
    """Train what the command line says, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], usage=argparse.SUPPRESS)
    parser.add_argument("--digits", type=int, default=4, choices=range(1, 6), help="digits of an input (4)")
    parser.add_argument("--budget", type=int, help="trajectories that CoT2 is shown (all)")
    parser.add_argument("--d", type=int, default=32, help="embedding dimension (32)")
    parser.add_argument("--seed", type=int, default=42, help="of split, initialisation and order (42)")
    parser.add_argument("--split", default="code", choices=["code", "random"], help="which inputs are held out (code)")
    parser.add_argument("--reward", action="store_true", help="GRPO from a discrete model of one layer, d = 24")
    given = parser.parse_args()
    budget = 2**given.digits if given.budget is None else given.budget
    if not 1 <= budget <= 2**given.digits:
        parser.error(f"--budget {budget}: choose 1 to {2**given.digits}, the trajectories of an input")
    if given.d < 2 or given.d % 2:
        parser.error(f"--d {given.d}: choose an even number, for two heads")
    torch.manual_seed(given.seed)
    task = Sums(given.digits)
    rows, held_out = task.split(given.seed, given.split)
    if given.reward:
        model, _ = train(task, 1, rows, held_out, d=24, layers=1, heads=1)
        before = accuracy(model, task, held_out, 3)
        reward(model, task, rows)
        print(f"thoughts of 3 tokens: {before:.1f} %, after reward {accuracy(model, task, held_out, 3):.1f} %")
    else:
        ends = [train(task, shown, rows, held_out, d=given.d)[1][-1][1] for shown in (budget, 1)]
        for name, end, paper in zip(("CoT2", "discrete"), ends, PAPER.get(given.d, ("none", "none"))):
            print(f"{name}: {end:.1f} % (the paper, all trajectories of four digits: {paper})")


if __name__ == "__main__":
    main()
