"""The `headrace` command: one file for each subcommand, on the package's public names alone."""

from headrace.cli.app import build_parser, main

__all__ = ["build_parser", "main"]
