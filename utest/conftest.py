"""What all unit tests share."""

from hypothesis import settings

# A deadline would measure the machine, which others may be using, and not the code.
settings.register_profile("podperf", deadline=None)
settings.load_profile("podperf")
