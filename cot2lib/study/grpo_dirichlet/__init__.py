"""Chapter `grpo_dirichlet`: policy gradients over the simplex."""
