"""What is public is exported from `treadle`, typed, and has a docstring; importing it loads no driver."""

import ast
import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path

import treadle

SOURCE = Path(treadle.__file__).parent
DRIVERS = ["sqlite3", "psycopg", "asyncpg", "redis", "sqlalchemy", "click", "msgspec", "pydantic"]


def test_every_public_name_is_importable_and_has_a_docstring():
    for name in treadle.__all__:
        value = getattr(treadle, name)
        assert name == "__version__" or inspect.getdoc(value), f"treadle.{name} has no docstring"


def test_every_public_method_has_a_docstring_and_is_annotated():
    for name in treadle.__all__:
        value = getattr(treadle, name)
        if not inspect.isclass(value):
            continue
        for method_name, method in vars(value).items():
            if method_name.startswith("_") or not inspect.isfunction(method):
                continue
            assert method.__doc__, f"{name}.{method_name} has no docstring"
            assert "return" in method.__annotations__, f"{name}.{method_name} has no return annotation"


def test_the_lazy_exports_and_those_for_type_checkers_are_the_same():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    typed = {alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names} - {None}
    assert typed == set(treadle.__all__) - {"__version__"}
    assert set(dir(treadle)) == set(treadle.__all__)


def test_importing_treadle_and_tasks_loads_no_driver_and_no_command():
    code = "import sys, treadle; treadle.Tasks('memory:'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [driver for driver in DRIVERS if driver in loaded] == []
    assert [module for module in loaded if module.startswith(("treadle.cli", "treadle.testing"))] == []


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(treadle, "Celery")


def test_errors_have_stable_codes_of_their_own():
    errors = [
        value
        for name in treadle.__all__
        if inspect.isclass(value := getattr(treadle, name)) and issubclass(value, treadle.TreadleError)
    ]
    codes = [error.code for error in errors]
    assert len(set(codes)) == len(codes)


def test_values_are_frozen():
    for name in ("Job", "Failure", "Enqueued", "Exponential", "Fixed", "Stats", "Pruned", "Redriven", "NewJob", "Schedule"):
        value = getattr(treadle, name)
        assert dataclasses.is_dataclass(value)
        assert value.__dataclass_params__.frozen
