"""Write the table anew."""

import json

from tests.vectors import TABLE, _estimators, _models, _tables

_WIDTH = 100


def make():
    return {
        "models": _models.make(),
        "estimators": _estimators.make(),
        "tables": _tables.make(),
    }


def readable(value, indent=""):
    """JSON with what fits on a line on one line, and no list of numbers on several."""
    flat = json.dumps(value, ensure_ascii=False)
    parts = value.values() if isinstance(value, dict) else value
    nested = isinstance(value, dict | list) and any(isinstance(v, dict | list) for v in parts)
    if not nested or len(indent + flat) <= _WIDTH:
        return flat
    inner = indent + " "
    if isinstance(value, list):
        lines = [inner + readable(item, inner) for item in value]
        return "[\n" + ",\n".join(lines) + "\n" + indent + "]"
    lines = [f"{inner}{json.dumps(key)}: {readable(item, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + indent + "}"


if __name__ == "__main__":
    TABLE.write_text(readable(make()) + "\n")
