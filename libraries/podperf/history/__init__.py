"""The history of a testbed: what earlier runs found, and what the newest run says against it.

`runs` reads a folder, `fingerprint` says which records may be compared, `trends` puts their figures in order, `changes`
is the arithmetic, and `judgement` has the words. Only `runs` and `acknowledgements` touch files.
"""
