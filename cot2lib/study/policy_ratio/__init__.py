"""Chapter `policy_ratio`: which policy ratio is right for thoughts of several tokens."""
