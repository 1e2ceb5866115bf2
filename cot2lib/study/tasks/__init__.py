"""Chapter `tasks`: digits, signs and the targets of a budget."""
