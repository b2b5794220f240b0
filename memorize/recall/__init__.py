"""What is worth saying now: ranking, budgets, and the texts that are put in front of an agent."""
