"""Continuous thoughts in pretrained language models: the rules of `cot2lib.thoughts` on Hugging Face causal models.

| file | what |
| --- | --- |
| `responses` | rollouts that think first and write then; their replay, which carries gradients |
"""
