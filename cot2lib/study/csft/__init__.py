"""Chapter `csft`: training on superpositions."""
