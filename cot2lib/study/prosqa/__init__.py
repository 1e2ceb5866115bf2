"""Chapter `prosqa`: which of two leaves a root reaches."""
