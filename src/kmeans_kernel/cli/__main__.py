"""Entry point of `kmeans-kernel` and `python -m kmeans_kernel.cli`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from kmeans_kernel.cli import BAD_USE, INTERRUPTED
from kmeans_kernel.cli._signals import record_interrupts, was_interrupted

CLI_PACKAGES = {"typer", "rich", "polars", "click"}


def main() -> None:
    """Run the command line and exit with its exit code."""
    record_interrupts()
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        exit_with(BAD_USE, "Error: standard output is closed; open it to receive the result.")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Escape characters that the encoding of a terminal lacks, rather than fail on them.
            stream.reconfigure(errors="backslashreplace")
    code: Any = 0
    try:
        from kmeans_kernel.cli.app import app

        code = app(prog_name="kmeans-kernel", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        exit_with(INTERRUPTED, "Interrupted.")
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        discard_output()
        exit_with(BAD_USE, f"Error: the result cannot be written: {error.strerror}.")
    except Exception as error:
        if was_interrupted():
            exit_with(INTERRUPTED, "Interrupted.")
        if isinstance(error, ModuleNotFoundError) and (error.name or "") in CLI_PACKAGES:
            exit_with(
                BAD_USE,
                f"Error: the command line needs {error.name}; install it with: "
                "pip install 'kmeans-kernel[cli,save]'",
            )
        if not hasattr(error, "format_message"):
            raise
        exit_with(BAD_USE, usage_error(error))
    sys.exit(code or 0)


def usage_error(error: Any) -> str:
    """Return the usage error of click in one line; for a command without arguments, its help."""
    message: str = error.format_message().strip().replace("Value error, ", "")
    if type(error).__name__ == "NoArgsIsHelpError":
        return message
    command = error.ctx.command_path if getattr(error, "ctx", None) else "kmeans-kernel"
    return f"Error: {message} See {command} --help."


def exit_with(code: int, message: str) -> None:
    """Write a message to standard error, and exit."""
    sys.stderr.write(message + "\n")
    sys.exit(code)


def discard_output() -> None:
    """Redirect standard output to the null device.

    Python flushes it at exit, which would fail again on a closed pipe or a full disk.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
