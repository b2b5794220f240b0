"""Two to six replicas in memory, everything that can happen between them, and what must hold when it is over.

One seed is one history: every choice comes from one ``random.Random``, no thread runs, no clock is read, no disk is
touched. ``python -m tests.sync.simulator SEED --trace`` runs it again and prints every step.
"""
