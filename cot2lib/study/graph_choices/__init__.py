"""Appendix `graph_choices`: what each choice about graphs changes."""
