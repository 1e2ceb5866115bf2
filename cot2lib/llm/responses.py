"""Responses of a Hugging Face causal language model that thinks in continuous tokens before it writes.

A response begins with thoughts: a rule of `cot2lib.thoughts` turns the scores of a step into mixture weights, and what
is fed next is E^T weights (paper, section 2). Discrete tokens follow, up to an end token or a limit. The paper has
such models in its appendix on GSM8K, without code. That thoughts come first is our reading of its "128 discrete + 32
continuous".

A prompt is read once for all its responses, whose steps then reuse its keys and values. A response that has ended
leaves the batch. Draws belong to the place of a response in the whole batch, so it does not depend on what ends when.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from cot2lib.decode import keyed_noise
from cot2lib.errors import SpecError
from cot2lib.kit.frozen import is_outside
from cot2lib.kit.hugging_face import LanguageModel, Tokenizer
from cot2lib.testing import check_rule
from cot2lib.thoughts import Discrete, Rule, State, Thought
from cot2lib.training.grpo import Densities

Keys = Int[Tensor, " one"]  # of a single run
Noise = Callable[[int, int], Float[Tensor, "one response draw"]]
Hidden = Float[Tensor, "row d"]
Rows = Int[Tensor, " response"]
Tokens = Int[Tensor, "response token"]
Actions = Int[Tensor, "response thought draw"] | Float[Tensor, "response thought entry"] | None
Weights = Float[Tensor, "response thought vocab"] | None


@dataclass(frozen=True)
class Plan:
    """The parts of a response."""

    thought: Rule
    thoughts: int  # how many come first
    most: int  # discrete tokens that may follow
    token: Discrete = Discrete(1.0)  # the rule of these
    ends: tuple[int, ...] = ()  # tokens that end it


@dataclass(frozen=True)
class Prompts:
    """Prompts of a batch, padded on the left."""

    ids: Int[Tensor, "prompt token"]
    mask: Int[Tensor, "prompt token"]  # 1 for a token, 0 for padding

    @classmethod
    def of(cls, tokenizer: Tokenizer, texts: Sequence, device: torch.device | str = "cpu") -> "Prompts":
        """Texts by a Hugging Face tokenizer, or what else a function gives the `input_ids` of."""
        ids = [torch.tensor(tokenizer(text)["input_ids"], dtype=torch.int64, device=device) for text in texts]
        padded = partial(pad_sequence, batch_first=True, padding_side="left")
        return cls(padded(ids), padded([torch.ones_like(row) for row in ids]))

    def rows(self, chosen: slice) -> "Prompts":
        return Prompts(self.ids[chosen], self.mask[chosen])


@dataclass(frozen=True)
class Responses:
    """Thoughts and texts of a model, each prompt's responses side by side, prompt 0's first."""

    thoughts: Float[Tensor, "response thought d"]  # what each fed
    weights: Weights  # the mixtures that these are; None if they are none, or there are no thoughts
    actions: Actions  # what the rule of thoughts drew
    tokens: Int[Tensor, "response token"]  # discrete ones, as many as the longest has; 0 after the end
    lengths: Int[Tensor, " response"]  # discrete tokens of each, its end token included
    ended: Bool[Tensor, " response"]  # whether it came to an end token; if not, the limit cut it

    @property
    def there(self) -> Bool[Tensor, "one response step"]:
        """Which steps each has: its thoughts, and the tokens that are there."""
        written = torch.arange(self.tokens.shape[1], device=self.tokens.device) < self.lengths[:, None]
        return torch.cat([written.new_ones(self.thoughts.shape[:2]), written], 1)[None]

    def rows(self, chosen: slice) -> "Responses":
        parts: dict[str, Any] = {name: None if value is None else value[chosen] for name, value in vars(self).items()}
        return Responses(**parts)

    def texts(self, tokenizer: Tokenizer) -> list[str]:
        """The discrete part of each, without special tokens."""
        rows = zip(self.tokens.tolist(), self.lengths.tolist())
        return [tokenizer.decode(tokens[:length], skip_special_tokens=True) for tokens, length in rows]


class _Reader:
    """A model as it reads: last hidden states, and the keys and values of what it has read so far."""

    def __init__(self, model: LanguageModel, prompts: Prompts, samples: int):
        self.model, self.mask = model, prompts.mask
        self.cache: Any = None  # keys and values, as the model makes them
        self.table = model.get_input_embeddings().weight  # (vocab, d)
        self.last = self._read(self.table[prompts.ids])[:, -1].repeat_interleave(samples, 0)  # after each prompt
        self.mask = self.mask.repeat_interleave(samples, 0)
        self.cache.batch_repeat_interleave(samples)  # type: ignore[attr-defined]  # `_read` has made it

    def _read(self, fed: Float[Tensor, "row token d"]) -> Float[Tensor, "row token d"]:
        places = (self.mask.cumsum(1) - 1).clamp(min=0)[:, -fed.shape[1] :]
        where = dict(attention_mask=self.mask, position_ids=places, past_key_values=self.cache, use_cache=True)
        found = self.model.base_model(inputs_embeds=fed, **where)
        self.cache = found.past_key_values
        return found.last_hidden_state

    def read_on(self, fed: Float[Tensor, "row token d"]) -> Float[Tensor, "row token d"]:
        self.mask = torch.cat([self.mask, self.mask.new_ones(fed.shape[:2])], 1)
        return self._read(fed)

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        if len(rows) < len(self.mask):
            self.cache.batch_select_indices(rows)
            self.mask = self.mask[rows]

    def logits(self, hidden: Float[Tensor, "*lead d"]) -> Float[Tensor, "*lead vocab"]:
        """Scores, in single precision whatever the model's."""
        return self.model.get_output_embeddings()(hidden).float()

    def step(self, rule: Rule, hidden: Hidden, draws: Callable[[int], Float[Tensor, "one row draw"]]) -> Thought:
        return rule(State(self.logits(hidden)[None], hidden[None], draws, _no_peek, self.mix))

    def mix(self, weights: Float[Tensor, "*lead vocab"]) -> Float[Tensor, "*lead d"]:
        return weights.to(self.table.dtype) @ self.table

    def fed(self, thought: Thought) -> Float[Tensor, "row d"]:
        return self.mix(thought.weights[0]) if thought.latent is None else thought.latent[0]


@torch.no_grad()
def check_reads_plainly(model: LanguageModel) -> None:
    """Raise SpecError for a model that scales its embeddings or scores, so that this module would misread it."""
    ids = torch.arange(3, device=next(model.parameters()).device)[None]
    hidden = model.base_model(inputs_embeds=model.get_input_embeddings().weight[ids]).last_hidden_state
    ours, theirs = model.get_output_embeddings()(hidden).float(), model(input_ids=ids).logits.float()
    if not torch.allclose(ours, theirs, atol=1e-2 * float(theirs.std())):
        raise SpecError(
            f"{type(model).__name__} scales embeddings or scores; choose a model that reads its embeddings as they "
            "are, such as GPT-2, Llama or Qwen."
        )


@torch.no_grad()
def respond(model: LanguageModel, prompts: Prompts, plan: Plan, keys: Keys, samples: int = 1) -> Responses:
    """Responses of a model, `samples` of each prompt, with draws by one random key (`cot2lib.kit.random.run_keys`).

    The model reads embeddings as they are, and its scores are its output embeddings of the last hidden state
    (`check_reads_plainly`).
    """
    if is_outside(type(plan.thought)):
        check_rule(plan.thought, *model.get_input_embeddings().weight.shape)
    reader = _Reader(model, prompts, samples)
    noise = keyed_noise(keys.to(reader.mask.device), len(reader.last))
    hidden, thoughts = reader.last, []
    fed = [hidden.new_zeros(len(hidden), 0, reader.table.shape[1])]  # (response, thought, d)
    for step in range(plan.thoughts):
        thoughts.append(reader.step(plan.thought, hidden, partial(noise, step)))
        fed.append(reader.fed(thoughts[-1])[:, None])
        hidden = reader.read_on(fed[-1])[:, 0]
    tokens, lengths, ended = _write(reader, plan, noise, hidden)
    mixed = thoughts and all(thought.latent is None for thought in thoughts)
    weights = torch.stack([thought.weights[0] for thought in thoughts], 1) if mixed else None
    drawn = [thought.action[0] for thought in thoughts if thought.action is not None]
    actions = torch.stack(drawn, 1) if drawn else None
    return Responses(torch.cat(fed, 1), weights, actions, tokens[:, : int(lengths.max())], lengths, ended)


def _write(
    reader: _Reader, plan: Plan, noise: Noise, hidden: Hidden
) -> tuple[Tokens, Rows, Bool[Tensor, " response"]]:
    rows = torch.arange(len(hidden), device=hidden.device)  # responses that go on
    tokens, lengths = rows.new_zeros(len(rows), plan.most), torch.zeros_like(rows)
    ends = rows.new_tensor(plan.ends)
    for place in range(plan.most):
        draws = lambda count, place=place, rows=rows: noise(plan.thoughts + place, count)[:, rows]
        thought = reader.step(plan.token, hidden, draws)
        chosen = thought.weights[0].argmax(-1)  # (row,)
        tokens[rows, place], lengths[rows] = chosen, place + 1
        going = (~torch.isin(chosen, ends)).nonzero()[:, 0]
        rows = rows[going]
        if not len(rows) or place == plan.most - 1:
            break
        reader.keep(going)
        hidden = reader.read_on(reader.fed(thought)[going][:, None])[:, 0]
    ended = torch.ones_like(lengths, dtype=torch.bool)
    ended[rows] = False
    return tokens, lengths, ended


def replay(model: LanguageModel, prompts: Prompts, plan: Plan, responses: Responses) -> Densities:
    """Log-densities of what responses drew under a model, in one forward that carries gradients; all rules sample.

    Mixtures are fed through the model's present embeddings, which take gradients by them. Steps beyond the end are
    there too, without consequence; `Responses.there` tells them.
    """
    reader = _Reader(model, prompts, len(responses.tokens) // len(prompts.ids))
    thoughts = responses.thoughts if responses.weights is None else reader.mix(responses.weights)
    inputs = torch.cat([thoughts, reader.table[responses.tokens[:, :-1]]], 1)  # (response, step, d)
    hidden = reader.last[:, None]
    if inputs.shape[1]:
        hidden = torch.cat([hidden, reader.read_on(inputs)], 1)  # (response, step, d)
    logits = reader.logits(hidden)[None]  # (1, response, step, vocab)
    parts = logits[:, :, : plan.thoughts], logits[:, :, plan.thoughts :]
    written = plan.token.log_densities(parts[1], responses.tokens[None, ..., None])
    if responses.actions is None:
        return [written]
    parameters = plan.thought.parameters(parts[0], reader.mix)  # type: ignore[attr-defined]  # checked: it samples
    return [plan.thought.log_densities(parameters, responses.actions[None]), written]  # type: ignore[attr-defined]


def _no_peek() -> NoReturn:
    raise SpecError("a language model's thoughts cannot look at the next position.")
