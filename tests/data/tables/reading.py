"""Files written by tests, and tables compared with what they should hold."""

from kmeans_kernel.data.tables import Reading, read_table

# Letters for the types of columns.
TYPES = {
    "Int64": "i", "Float64": "f", "Boolean": "b", "String": "s", "Date": "d",
    "Datetime(time_unit='us', time_zone=None)": "t",
}  # fmt: skip

READING = ("encoding", "header", "decimal", "dates", "missing", "trained")


def read(tmp_path, content, name="data.csv", **options):
    """Write a file and read it; options are those of `Reading` and of `read_table`."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    reading = {key: options.pop(key) for key in READING if key in options}
    return read_table(path, reading=Reading(**reading), **options)


def types_of(table):
    """Return the types of the columns of a table, a letter each."""
    return "".join(TYPES[str(dtype)] for dtype in table.X.dtypes)


def notes_of(table, tmp_path):
    """Return the notes of a table without the folder of the file."""
    return [note.replace(f"{tmp_path}/", "") for note in table.notes]
