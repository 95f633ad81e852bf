"""The history of a testbed: the figures of earlier runs, and the verdict on the newest run.

`runs` reads a folder. `fingerprint` decides which records can be compared. `trends` puts their figures in order.
`changes` has the arithmetic, and `judgement` the words. Only `runs` and `acknowledgements` touch files.
"""
