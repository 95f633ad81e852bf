"""Parts of the commands `podperf run` and `podperf compare`. Robot Framework uses modifiers and listeners of them."""
