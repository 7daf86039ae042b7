"""`python -m kernel`: the command line, which lives in dispatch; this is the one place that names it."""


def main() -> None:
    """Run the command line."""
    from dispatch.cli import main as run

    run()


if __name__ == "__main__":
    main()
