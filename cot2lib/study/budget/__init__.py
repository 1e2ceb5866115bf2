"""Chapter `budget`: how much of the search to show."""
