"""The paper's numbers and claims, and what of ours stands beside each.

- `claims.csv` holds them as printed; `printed` reads it.
- `rules` gives verdicts, in a table.
- `kinds` has one class per kind of claim, which makes its rows and judges them.
- `samples` reads what was measured on shipped runs.
- `training`, `budgets`, `sampling`, `tokens`, `simplex`, `tables` and `statements` say which measurement stands beside
  which claim, one file for each family of claims.
- `ledger` puts them together.
"""
