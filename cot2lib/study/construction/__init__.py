"""Chapter `construction`: a transformer that solves the task by construction, and what training makes of its parts."""
