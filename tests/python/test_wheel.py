"""The installed wheel as a whole: what it holds, brings along, shows to others and costs."""

from __future__ import annotations

import importlib.metadata
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest
import specdec

PACKAGE = pathlib.Path(specdec.__file__).parent
SCRIPT = pathlib.Path(sysconfig.get_path("scripts")) / "specdec"


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)


def python(code: str) -> str:
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_library_program_and_distribution_have_one_version() -> None:
    assert specdec.__version__ == importlib.metadata.version("specdec-planner")
    assert run(SCRIPT, "--version").stdout == f"specdec {specdec.__version__}\n"


def test_the_console_command_is_the_program() -> None:
    as_command = run(SCRIPT, "plan", "--alpha", "0.8", "--c", "0.05")
    as_module = run(sys.executable, "-m", "specdec", "plan", "--alpha", "0.8", "--c", "0.05")
    assert as_command.returncode == 0
    assert as_command.stdout.startswith("Draft 8 tokens: about 3.09x plain decoding.")
    assert as_module.stdout == as_command.stdout
    assert run(SCRIPT, "plan", "--alpha", "2", "--c", "0.05").returncode == 2


def test_the_program_finds_the_shipped_models(tmp_path: pathlib.Path) -> None:
    recording = tmp_path / "run"
    made = run(SCRIPT, "record", "--tier", "scalar", "--sequences", "2", "--max-new-tokens", "4", "--output", recording)
    assert made.returncode == 0, made.stderr
    assert list(recording.glob("*.safetensors"))


def test_numpy_is_the_only_dependency() -> None:
    needs = [need for need in importlib.metadata.requires("specdec-planner") or [] if "extra ==" not in need]
    assert [need.split(">")[0] for need in needs] == ["numpy"]


def test_importing_loads_nothing_large() -> None:
    loaded = python("import sys, specdec; print(*sys.modules)").split()
    assert not {"numpy", "pandas", "torch", "concurrent", "asyncio"} & set(loaded)


def test_importing_takes_less_than_a_tenth_of_a_second() -> None:
    """Measures processor time, which other work on the machine does not change; the fastest of five."""
    code = "import time; begin = time.process_time(); import specdec; print(time.process_time() - begin)"
    assert min(float(python(code)) for _ in range(5)) < 0.1


def test_the_module_shows_its_entry_alone() -> None:
    if shutil.which("nm") is None:
        pytest.skip("needs nm")
    (module,) = PACKAGE.glob("_core*.so")
    shown = run("nm", "--dynamic", "--defined-only", "--format=posix", module).stdout.split("\n")
    assert [line.split()[0] for line in shown if line] == ["PyInit__core"]


@pytest.mark.parametrize("other", ["pyarrow", "sentencepiece", "torch"])
def test_other_packages_work_before_and_after(other: str) -> None:
    pytest.importorskip(other)
    tokenizer = PACKAGE / "share" / "specdec" / "models" / "target" / "tokenizer.model"
    use = {
        "pyarrow": "assert pyarrow.array([1, 2]).to_pylist() == [1, 2]",
        "sentencepiece": f"tokens = sentencepiece.SentencePieceProcessor(model_file={str(tokenizer)!r}); "
        "assert tokens.decode(tokens.encode('to be or not')) == 'to be or not'",
        "torch": "assert torch.ones(2).sum().item() == 2",
    }[other]
    ours = "assert specdec.theory.optimal_gamma(0.8, 0.05).gamma == 8"
    python(f"import {other}, specdec; {use}; {ours}; {use}")
    python(f"import specdec, {other}; {ours}; {use}; {ours}")


def test_each_library_that_came_along_has_its_licence() -> None:
    files = [pathlib.PurePath(file) for file in importlib.metadata.files("specdec-planner") or []]
    libraries = {file.name.split("-")[0] for file in files if file.parts[0].endswith(".libs")}
    licences = {file.stem for file in files if "licenses" in file.parts}
    if not libraries:
        pytest.skip("the wheel was not repaired: it uses the system's libraries")
    assert libraries <= licences
    assert {"LICENSE", "LICENSES"} <= licences
