"""The book as a whole: all runs, the ledger of claims, its cards and index, records and machines."""
