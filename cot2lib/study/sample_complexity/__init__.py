"""The chapter `sample_complexity`: what sampled thoughts estimate, on chains whose laws are known and on models."""
