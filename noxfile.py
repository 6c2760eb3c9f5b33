"""Developer sessions: `nox -l` lists them, `nox -s lint tests` runs some. Arguments after `--` go to the tool."""

import os

import nox

nox.needs_version = ">=2024.10.9"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.error_on_missing_interpreters = False

ROOT = os.path.dirname(os.path.abspath(__file__))
PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]
WITH_CPP_TESTS = "-Ccmake.define.PYOP_TESTS=ON"


def group(session: nox.Session, name: str) -> None:
    """Install a dependency group of pyproject.toml."""
    session.install(*nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), name))


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, clang-format, cython-lint, codespell. `-- --fix` repairs what can be repaired."""
    group(session, "lint")
    if "--fix" in session.posargs:
        sources = session.run("git", "ls-files", "*.cpp", "*.h", external=True, silent=True) or ""
        session.run("ruff", "check", "--fix", ".")
        session.run("ruff", "format", ".")
        session.run("clang-format", "-i", *sources.split())
    session.run(os.path.join(ROOT, ".ci", "lint"), external=True)


@nox.session
def types(session: nox.Session) -> None:
    """mypy --strict on the package; mypy and pyright on what users of it see."""
    group(session, "types")
    session.install(".")
    session.run(os.path.join(ROOT, ".ci", "types"), external=True)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The test suite, with the C++ tests, on every interpreter present."""
    session.install(WITH_CPP_TESTS, ".[test]")
    session.run("pytest", *session.posargs)


def sanitize(session: nox.Session, kind: str) -> None:
    group(session, "build")
    group(session, "sanitize")
    session.run("bash", "tests/sanitize.sh", kind, *session.posargs, external=True)


@nox.session
def asan(session: nox.Session) -> None:
    """Lifetime, threads and native steps under AddressSanitizer and UndefinedBehaviorSanitizer."""
    sanitize(session, "address")


@nox.session
def tsan(session: nox.Session) -> None:
    """Lifetime and thread tests under ThreadSanitizer."""
    sanitize(session, "thread")


@nox.session
def bench(session: nox.Session) -> None:
    """Print the budget table; `-- op_call chain` runs some suites."""
    session.install(WITH_CPP_TESTS, ".[bench]")
    session.run("python", "-m", "benchmarks", *session.posargs)
