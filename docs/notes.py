"""The line below a table: how and where it was measured."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def with_note(lines: Iterable[str], how: str, rows: Iterable[dict[str, Any]]) -> str:
    """Return a table with a line below on how and where it was measured."""
    return "\n".join([*lines, "", machine_note(how, rows)])


def machine_note(how: str, rows: Iterable[dict[str, Any]]) -> str:
    """Return one line on how and where rows were measured; all in one place, or it says so."""
    machines = {json.dumps(row["machine"]): row["machine"] for row in rows}
    told = [", ".join(f"{name} {value}" for name, value in m.items()) for m in machines.values()]
    return f"{how}; {'; others: '.join(told)}."
