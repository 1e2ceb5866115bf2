"""Continuous chain of thought (CoT2) on one page: a task, a GPT-2, training by supervision and by reward.

    python cot2.py             train CoT2 and discrete chain of thought, and compare them
    python cot2.py --reward    reward a discrete model that thinks in means of three sampled tokens (GRPO)

The task is to give digits, such as 2 1 4 3, signs that make their sum the smallest one from 0 up. A chain of thought
lists the partial sums. A discrete one commits to one token at each step; CoT2 feeds itself z = sum_i p_i E_i instead,
all token embeddings E_i weighted by its own next-token probabilities p, so one thought can carry many candidates.
"""

import argparse
import math
import random
from itertools import product

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
        self.digits = torch.tensor(list(product(range(1, 10), repeat=m)))  # (input, m)
        begun = F.pad(DIGIT + self.digits, (1, 0), value=BOS)
        self.prompts = F.pad(begun, (0, 1), value=ARROW)  # (input, m + 2)
        self.answers = self.targets(1)[:, -1].argmax(-1)  # (input,)

    def split(self, seed: int):
        """Rows to train on (80 %) and held out; orders of the same digits stay together."""
        keys = [tuple(sorted(row)) for row in self.digits.tolist()]
        groups = list(dict.fromkeys(keys))
        random.Random(seed).shuffle(groups)
        chosen = set(groups[: int(0.8 * len(groups))])
        mask = torch.tensor([key in chosen for key in keys])
        return mask.nonzero()[:, 0], (~mask).nonzero()[:, 0]

    def targets(self, budget: int) -> torch.Tensor:
        """What each step should say, (input, step, token): the shares of sums in the `budget`
        trajectories that end best. Budget 1 gives one token: discrete chain of thought."""
        signs = torch.tensor(list(product((-1, 1), repeat=self.m)))  # (trajectory, m)
        signs = signs.flip(0) if budget == 1 else signs  # the authors' order of ties
        sums = (signs * self.digits[:, None]).cumsum(-1)  # (input, trajectory, step)
        rank = 2 * sums[..., -1].abs() + (sums[..., -1] < 0)  # small |sum| first, 3 before -3
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
        split = self.attn_in(self.ln_1(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = split.permute(2, 0, 3, 1, 4)  # (batch, head, position, d / heads)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attn_out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp_out(F.gelu(self.mlp_in(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """Embeddings in, next-token logits out: a thought is an embedding, seldom a token's."""

    def __init__(self, vocab: int, positions: int, d=32, layers=2, heads=2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(positions, d)
        self.blocks = nn.Sequential(*(Block(d, heads) for _ in range(layers)))
        self.ln_f = nn.LayerNorm(d)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:  # as GPT-2: smaller where a layer adds to the stream
                nn.init.normal_(weight, 0, 0.02 / (2 * layers if "_out" in name else 1) ** 0.5)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    def forward(self, x):  # (batch, position, d) -> (batch, position, token)
        return self.ln_f(self.blocks(x + self.wpe.weight[: x.shape[1]])) @ self.wte.weight.T


def log_likelihood(model, prompts, thoughts):
    """sum_i thought_i log p_i of every step, (batch, step), if the model is fed the `thoughts`
    (batch, step, token; the answer last). All are known, so one pass does all steps."""
    fed = thoughts[:, :-1] @ model.wte.weight  # (batch, step - 1, d): z = sum_i thought_i E_i
    logits = model(torch.cat([model.wte(prompts), fed], dim=1))[:, prompts.shape[1] - 1 :]
    return (thoughts * logits.log_softmax(-1)).sum(-1)


def next_thought(logits, rule):
    """What is fed next, (batch, token). Rule "base": the model's whole distribution (CoT2);
    "discrete": its likeliest token; a number K: the mean of K tokens drawn from it (MTS)."""
    if rule == "base":
        return logits.softmax(-1)
    if rule == "discrete":
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).float()
    tokens = logits.softmax(-1).multinomial(rule, replacement=True)  # (batch, K)
    return F.one_hot(tokens, logits.shape[-1]).float().mean(1)


@torch.no_grad()
def think(model, prompts, steps: int, rule, answer="discrete"):
    """Thoughts of a model that is fed its own, and last its answer, (batch, step, token)."""
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
    """Continuous supervised fine-tuning (CSFT): the model, and its held-out accuracies."""
    model, targets = GPT2(task.vocab, task.positions, **shape), task.targets(budget)
    optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0.0, fused=True)
    rule, curve = "discrete" if budget == 1 else "base", []
    for step in range(1, steps + 1):
        cosine = (1 + math.cos(math.pi * step / steps)) / 2  # warm-up, then down to zero
        optimizer.param_groups[0]["lr"] = lr * min(step / 100, 1) * cosine
        index = rows[torch.randint(len(rows), (batch,))]
        loss = -log_likelihood(model, task.prompts[index], targets[index]).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % max(1, steps // 20) == 0:
            curve.append((step, accuracy(model, task, held_out, rule)))
            print(f"{rule}, step {step}: loss {loss:.2f}, held out {curve[-1][1]:.1f} %")
    return model, curve


def grpo_loss(new, old, rewards, clip: float = 0.1):
    """The clipped surrogate of GRPO, negated. `new`, `old` (trace, step): log-likelihoods of
    what was drawn, by the weights now and when drawn; `rewards`: (prompt, trace)."""
    spread = rewards.std(-1, correction=0, keepdim=True).clamp(min=1e-12)
    advantages = ((rewards - rewards.mean(-1, keepdim=True)) / spread).view(-1, 1)
    ratio = (new - old).exp()  # a geometric mean over a thought's K tokens
    return -torch.min(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages).mean()


def reward(model, task: Sums, rows, k=3, steps=1640, batch=64, group=8, lr=3e-4):
    """Go on by GRPO: sample `group` traces of every prompt, and reward right answers alone."""
    optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0.01, fused=True)
    for step in range(1, steps + 1):
        index = rows[torch.randint(len(rows), (batch,))].repeat_interleave(group)  # (trace,)
        thoughts = think(model, task.prompts[index], task.m, rule=k, answer=1)
        right = (thoughts[:, -1].argmax(-1) == task.answers[index]).float()
        new = log_likelihood(model, task.prompts[index], thoughts)
        loss = grpo_loss(new, new.detach(), right.view(batch, group))  # one update, so ratio 1
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % max(1, steps // 20) == 0:
            print(f"reward, step {step}: {100 * right.mean():.1f} % of the traces right")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], usage=argparse.SUPPRESS)
    parser.add_argument("--digits", type=int, default=4, choices=range(1, 6), help="digits of an input (4)")
    parser.add_argument("--budget", type=int, help="trajectories that CoT2 is shown (all)")
    parser.add_argument("--d", type=int, default=32, help="embedding dimension (32)")
    parser.add_argument("--seed", type=int, default=42, help="of split, initialisation and order (42)")
    parser.add_argument("--reward", action="store_true", help="GRPO from a discrete model of one layer, d = 24")
    given = parser.parse_args()
    budget = 2**given.digits if given.budget is None else given.budget
    if not 1 <= budget <= 2**given.digits:
        parser.error(f"--budget {budget}: choose 1 to {2**given.digits}, the trajectories of an input")
    if given.d < 2 or given.d % 2:
        parser.error(f"--d {given.d}: choose an even number, for two heads")
    torch.manual_seed(given.seed)
    task = Sums(given.digits)
    rows, held_out = task.split(given.seed)
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
