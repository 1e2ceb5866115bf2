"""The chapter `speed`: our ways to train, reward and decode beside others'."""
