"""Claims of the paper: their kinds, the rows of `claims.csv` that say them as queries, and the few that need code."""
