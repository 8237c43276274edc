"""`python -m kmeans_kernel.cli`, and the entry point of the program."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from kmeans_kernel.cli import BAD_USE, INTERRUPTED
from kmeans_kernel.cli._signals import was_interrupted, watch_for_interrupt

LIBRARIES = {"typer", "rich", "polars", "click"}


def main() -> None:
    """Run the program and leave with its exit code."""
    watch_for_interrupt()
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        leave(BAD_USE, "Error: standard output is closed; there is nowhere to write to.")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # what a terminal cannot show
    code: Any = 0
    try:
        from kmeans_kernel.cli.app import app

        code = app(prog_name="kmeans-kernel", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        leave(INTERRUPTED, "Interrupted.")
    except BrokenPipeError:
        forget_output()
    except OSError as error:
        forget_output()
        leave(BAD_USE, f"Error: the result cannot be written: {error.strerror}.")
    except Exception as error:
        if was_interrupted():
            leave(INTERRUPTED, "Interrupted.")
        if isinstance(error, ModuleNotFoundError) and (error.name or "") in LIBRARIES:
            leave(
                BAD_USE,
                f"Error: the command line needs {error.name}; install it with: "
                "pip install 'kmeans-kernel[cli,save]'",
            )
        if not hasattr(error, "format_message"):
            raise
        leave(BAD_USE, usage_error(error))
    sys.exit(code or 0)


def usage_error(error: Any) -> str:
    """Return what the parser of the command line says, in one sentence; or the help it shows."""
    told: str = error.format_message().strip().replace("Value error, ", "")
    if type(error).__name__ == "NoArgsIsHelpError":
        return told
    command = error.ctx.command_path if getattr(error, "ctx", None) else "kmeans-kernel"
    return f"Error: {told} See {command} --help."


def leave(code: int, told: str) -> None:
    """Say why, and leave."""
    sys.stderr.write(told + "\n")
    sys.exit(code)


def forget_output() -> None:
    """Let nobody try to write the rest of standard output, whose reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
