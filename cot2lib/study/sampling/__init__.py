"""Chapter `sampling`: several samples of one model."""
