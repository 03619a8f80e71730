"""The version of the program, as it is shown and stored."""

VERSION = "0.1.0"
