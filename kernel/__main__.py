"""`python -m kernel`: the command line."""

from kernel.cli import main

main()
