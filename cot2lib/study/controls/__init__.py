"""Chapter `controls`: is it the superposition? Predictions, controls and interventions."""
