#!/usr/bin/env python3
"""Runs the two examples of docs/reference/formats.md.

usage: run_trace_examples.py docs/reference/formats.md CPP_EXAMPLE DESCRIBE_TRACE

The Python example must write a trace in which DESCRIBE_TRACE finds nothing wrong and what the example says is in it.
The safetensors package for Python is not in Debian 12, so the example imports a stand-in that is written below: its
save_file() takes the same arguments and lays the tensors out as the package does. NumPy is the real one; where no
Python that is here has it, the test is skipped (exit code 77). CPP_EXAMPLE is the C++ example, compiled as it stands
in the page, and must print what the page says.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

STAND_IN = '''
import json

NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "uint8": "U8"}


def save_file(tensor_dict, filename, metadata=None):
    header = {} if metadata is None else {"__metadata__": metadata}
    offset, data = 0, []
    for name, array in sorted(tensor_dict.items(), key=lambda item: (-item[1].itemsize, item[0])):
        data.append(array.tobytes())
        end = offset + len(data[-1])
        header[name] = {"dtype": NAMES[array.dtype.name], "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(filename, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(data))
'''

DESCRIPTION = """\
0 findings
5 positions, 2 sequences, vocabulary 4
full
task 0: 3
task 1: 2
"""

SKIPPED = 77


def block(page: str, kind: str) -> str:
    """The first fenced block of that kind."""
    fences = re.split(r"^```(.*)\n", page, flags=re.MULTILINE)
    # Text, then for each block its kind, its content, an empty kind and the text up to the next one.
    blocks = zip(fences[1::4], fences[2::4])
    return next(content for found, content in blocks if found == kind)


def python_with_numpy() -> str:
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
            return python
    print("skipped: no Python here has NumPy")
    sys.exit(SKIPPED)


def require_output(command: list, folder: pathlib.Path, expected: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0 or done.stdout != expected:
        sys.exit(f"{command} exited with {done.returncode} and printed\n{done.stdout}{done.stderr}not\n{expected}")


def main() -> None:
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    cpp_example, describe_trace = sys.argv[2:4]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        require_output([cpp_example], folder, block(page, ""))
        package = folder / "safetensors"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "numpy.py").write_text(STAND_IN, encoding="utf-8")
        (folder / "example.py").write_text(block(page, "python"), encoding="utf-8")
        require_output([python_with_numpy(), "example.py"], folder, "")
        require_output([describe_trace, "trace.safetensors"], folder, DESCRIPTION)


if __name__ == "__main__":
    main()
