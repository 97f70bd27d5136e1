"""Settings for all tests."""

from hypothesis import settings

# Machines are busy and compilers take their time; what a test claims is not how long it takes.
settings.register_profile("skillstack", deadline=None)
settings.load_profile("skillstack")
