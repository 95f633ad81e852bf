"""Measures by turns: contenders in random order, a ratio with its interval, a verdict.

It measures claims of the draft and of others, results that others published, and comparisons that users write.
"""
