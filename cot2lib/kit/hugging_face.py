"""Hugging Face's package, which only some need: the extra `llm`."""

import warnings
from types import ModuleType
from typing import Any

from cot2lib.errors import SpecError

LanguageModel = Any  # a transformers.PreTrainedModel
Tokenizer = Any  # a transformers.PreTrainedTokenizerBase


def transformers() -> ModuleType:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="IProgress not found")  # a notebook needs no bars of its own
            import tqdm.auto  # noqa: F401
        import transformers
    except ImportError as error:
        raise SpecError(
            "package 'transformers' is missing: install the extra with `pip install 'cot2lib[llm]'`."
        ) from error
    return transformers
