"""Everything that is measured by turns: contenders in random order, a ratio with its interval, a verdict.

Claims of the draft and of others, results that others published, and comparisons that users write.
"""
