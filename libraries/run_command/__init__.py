"""Parts of the command `podperf run`. Robot Framework uses the modifiers and listeners among them."""
