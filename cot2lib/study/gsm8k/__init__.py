"""Chapter `gsm8k`: word problems."""
