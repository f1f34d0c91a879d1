"""Entry point of `python -m rltools_host`, which the launcher `rlt` runs."""

from rltools_host.cli import main

if __name__ == "__main__":
    main()
