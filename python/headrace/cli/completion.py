"""`headrace completion`: scripts that complete commands and options, made from argparse's tree."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from dataclasses import dataclass

from headrace.cli.failures import EXIT_OK
from headrace.cli.output import Output

NAME = "completion"
SUMMARY = "print a completion script for a shell"
DESCRIPTION = """\
Prints a script that completes commands, options, choices and file names.
"""
EXAMPLES = """\
examples:
  bash  eval "$(headrace completion bash)"          (in ~/.bashrc)
  zsh   eval "$(headrace completion zsh)"           (in ~/.zshrc, below compinit)
  fish  headrace completion fish > ~/.config/fish/completions/headrace.fish
"""

SHELLS = ("bash", "zsh", "fish")
# What an option's value is, by its placeholder: completed with file or folder names.
_FILES = frozenset({"FILE", "SOURCE", "SHARDS", "URL"})
_FOLDERS = frozenset({"DIR", "OUT"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Fills the parser of this command."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=" | ".join(SHELLS))


def run(args: argparse.Namespace, out: Output) -> int:
    """Runs the command and returns its exit code."""
    from headrace.cli.app import build_parser

    commands = describe(build_parser())
    script = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}[args.shell](commands)
    sys.stdout.write(script)
    return EXIT_OK


@dataclass(frozen=True)
class Argument:
    """One option, or the positional arguments when it has no names."""

    names: tuple[str, ...]
    value: str  # "none", "any", "file", "folder" or "choice"
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class Command:
    """One command; the first of a tree, with an empty name, is the program itself."""

    name: str
    help: str
    arguments: tuple[Argument, ...]

    @property
    def options(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.names)

    @property
    def positional(self) -> str:
        """What positional arguments are, taken together."""
        kinds = {a.value for a in self.arguments if not a.names}
        return next((k for k in ("file", "folder", "choice") if k in kinds), "none")


def describe(parser: argparse.ArgumentParser) -> list[Command]:
    """The program and its commands, as completion needs them."""
    subparsers = _subparsers(parser)
    commands = [Command("", "", _arguments(parser))]
    if subparsers is None:
        return commands
    helps = {choice.dest: choice.help or "" for choice in subparsers._choices_actions}
    for name, child in subparsers.choices.items():
        commands.append(Command(name, helps.get(name, ""), _arguments(child)))
    return commands


def _subparsers(
    parser: argparse.ArgumentParser,
) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action
    return None


def _arguments(parser: argparse.ArgumentParser) -> tuple[Argument, ...]:
    return tuple(
        Argument(tuple(a.option_strings), _value(a), tuple(map(str, a.choices or ())), a.help or "")
        for a in parser._actions
        if not isinstance(a, argparse._SubParsersAction)
    )


def _value(action: argparse.Action) -> str:
    if action.option_strings and action.nargs == 0:
        return "none"
    if action.choices is not None:
        return "choice"
    # "URL" is a folder name here when it names a data set, and no file when it is an --endpoint.
    metavar = str(action.metavar)
    if metavar in _FILES and not (action.option_strings and metavar == "URL"):
        return "file"
    return "folder" if metavar in _FOLDERS else "any"


# --- bash ----------------------------------------------------------------------------------------

_BASH = """\
# Completion of headrace for bash; made by `headrace completion bash`.
_headrace() {{
  local current previous command word
  current=${{COMP_WORDS[COMP_CWORD]}}
  previous=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  command=
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $word in
      {names}) command=$word; break ;;
    esac
  done
  case "$command $previous" in
{values}
  esac
  if [[ $current == -* ]]; then
    case $command in
{options}
    esac
    return
  fi
  case $command in
    '') COMPREPLY=($(compgen -W "{words}" -- "$current")) ;;
{positionals}
  esac
}}
complete -F _headrace headrace
"""


def bash_script(commands: list[Command]) -> str:
    """Works with bash 3.2 and without the bash-completion package."""
    values, options, positionals = [], [], []
    for command in commands:
        for argument in command.options:
            if argument.value == "none":
                continue
            pattern = "|".join(shlex.quote(f"{command.name} {name}") for name in argument.names)
            values.append(f"    {pattern}) {_bash_values(argument)} return ;;")
        words = " ".join(name for argument in command.options for name in argument.names)
        reply = f'COMPREPLY=($(compgen -W "{words}" -- "$current"))'
        options.append(f"      {shlex.quote(command.name)}) {reply} ;;")
        if command.name:
            merged = Argument((), command.positional, _positional_choices(command), "")
            positionals.append(f"    {command.name}) {_bash_values(merged)} ;;")
    names = [command.name for command in commands if command.name]
    return _BASH.format(
        names="|".join(names),
        words=" ".join(names),
        values="\n".join(values),
        options="\n".join(options),
        positionals="\n".join(positionals),
    )


def _bash_values(argument: Argument) -> str:
    if argument.value == "choice":
        return f'COMPREPLY=($(compgen -W "{" ".join(argument.choices)}" -- "$current"));'
    if argument.value in ("file", "folder"):
        flag = "-f" if argument.value == "file" else "-d"
        # One name a line, so that names with spaces stay whole.
        return (
            "compopt -o filenames 2>/dev/null; local IFS=$'\\n'; "
            f'COMPREPLY=($(compgen {flag} -- "$current"));'
        )
    return ":;"


def _positional_choices(command: Command) -> tuple[str, ...]:
    return tuple(c for a in command.arguments if not a.names for c in a.choices)


# --- zsh -----------------------------------------------------------------------------------------

_ZSH = """\
#compdef headrace
# Completion of headrace for zsh; made by `headrace completion zsh`.
_headrace() {{
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \\
{options}
    '1: :->command' \\
    '*:: :->rest' && return
  case $state in
    command)
      local -a commands=(
{commands}
      )
      _describe command commands ;;
    rest)
      case $line[1] in
{rest}
      esac ;;
  esac
}}
if [[ $funcstack[1] == _headrace ]]; then _headrace "$@"; else compdef _headrace headrace; fi
"""


def zsh_script(commands: list[Command]) -> str:
    """To be evaluated below compinit, or saved as a file `_headrace` in $fpath."""
    program, *children = commands
    rest = []
    for command in children:
        lines = [_zsh_option(name, a) for a in command.options for name in a.names]
        lines.append(f"'*: :{_zsh_action(command.positional, _positional_choices(command))}'")
        body = " \\\n".join(f"            {line}" for line in lines)
        rest.append(f"        {command.name})\n          _arguments \\\n{body} ;;")
    return _ZSH.format(
        options="\n".join(f"    {_zsh_option(n, a)} \\" for a in program.options for n in a.names),
        commands="\n".join(f"        {shlex.quote(c.name + ':' + c.help)}" for c in children),
        rest="\n".join(rest),
    )


def _zsh_option(name: str, argument: Argument) -> str:
    text = re.sub(r"([\[\]:\\])", r"\\\1", argument.help)
    value = (
        "" if argument.value == "none" else f": :{_zsh_action(argument.value, argument.choices)}"
    )
    return shlex.quote(f"*{name}[{text}]{value}")


def _zsh_action(value: str, choices: tuple[str, ...]) -> str:
    if value == "choice":
        return f"({' '.join(choices)})"
    return {"file": "_files", "folder": "_files -/"}.get(value, "")


# --- fish ----------------------------------------------------------------------------------------


def fish_script(commands: list[Command]) -> str:
    """One `complete` line for each command and option."""
    lines = ["# Completion of headrace for fish; made by `headrace completion fish`."]
    for command in commands:
        if command.name:
            lines.append(
                f"complete -c headrace -n __fish_use_subcommand -f -a {command.name} "
                f"-d {_fish_quote(command.help)}"
            )
        where = (
            f"__fish_seen_subcommand_from {command.name}"
            if command.name
            else "__fish_use_subcommand"
        )
        condition = _fish_quote(where)
        if command.name and command.positional not in ("file", "folder"):
            words = " ".join(_positional_choices(command))
            lines.append(f"complete -c headrace -n {condition} -f -a {_fish_quote(words)}")
        for argument in command.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in argument.names
            )
            lines.append(
                f"complete -c headrace -n {condition} {names}{_fish_value(argument)} "
                f"-d {_fish_quote(argument.help)}"
            )
    return "\n".join(lines) + "\n"


def _fish_value(argument: Argument) -> str:
    if argument.value == "none":
        return ""
    if argument.value == "choice":
        return f" -x -a {_fish_quote(' '.join(argument.choices))}"
    if argument.value == "folder":
        return " -x -a '(__fish_complete_directories)'"
    return " -r -F" if argument.value == "file" else " -x"


def _fish_quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
