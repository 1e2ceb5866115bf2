"""Chapter `prontoqa`: whether a chain of concepts leads to a property."""
