"""Parts of the commands `podperf run` and `podperf compare`. Robot Framework uses the modifiers and listeners among them."""
