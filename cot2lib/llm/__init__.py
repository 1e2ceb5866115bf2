"""Continuous thoughts in pretrained language models: the rules of `cot2lib.thoughts` on Hugging Face causal models.

Any rule that does not look ahead can answer, and any of these that samples can be trained.

| file | what |
| --- | --- |
| `models` | models by name or from a folder, SmolLM2 from its package, small ones of Qwen3's architecture |
| `gsm8k` | the published word problems, from a folder or downloaded |
| `stories` | word problems with exact answers and chains, from a seed |
| `answers` | the number that a response gives, and its reward |
| `responses` | rollouts that think first and write then; their replay, which carries gradients |
| `warm_start` | supervised training on stories and chains |
| `policy` | GRPO with the paper's curriculum on sampled thoughts |
| `settings` | such trainings, and what they start from, as frozen data |
| `runs` | trains them; the local store keeps and resumes them |
"""
