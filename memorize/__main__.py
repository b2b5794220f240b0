"""``python -m memorize``."""

from memorize.cli.main import main

main()
