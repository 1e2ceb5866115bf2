"""Chapter `grpo_mts`: policy gradients over sampled tokens."""
