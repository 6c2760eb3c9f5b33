"""Implement the command line: ``python -m pyop COMMAND``, and ``pyop-config``."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence

from ._core import __version__


def info(args: argparse.Namespace) -> int:
    """Print how pyop was built and what it runs on."""
    from .config import build_config, get_cmake_dir, get_include

    config = build_config() | {"paths": {"include": get_include(), "cmake": get_cmake_dir()}, "optional": _optional()}
    config["run"] = config["run"] | {"machine code": _machine_code()}
    if args.json:
        json.dump(config, sys.stdout, indent=2)
        print()
        return 0
    print(f"pyop {__version__}")
    for title, entries in config.items():
        print(f"\n{title}")
        for key, value in entries.items():
            print(f"  {key:<12} {value or '-'}")
    return 0


def _machine_code() -> str:
    from ._core import machine_code_policy
    from .machine_code.compiler import why_missing

    policy = machine_code_policy()
    return policy if policy == "off" else why_missing() or policy


# Packages that parts of pyop use where they are: the name on the index.
_OPTIONAL = (
    "rich onnx scipy numba torch jax tensorflow pytensor dask ray pandas xarray cloudpickle threadpoolctl matplotlib "
    "nvtx ittapi llvmlite"
)


def _optional() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in _OPTIONAL.split():
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = ""
    return versions


def config(args: argparse.Namespace) -> int:
    """Print what a compiler, Cython or CMake asks for, one answer a line."""
    if not args.wanted:
        print(f"{args.prog}: say what to print: {', '.join(_CONFIG)}", file=sys.stderr)
        return 2
    for option in args.wanted:
        print(_CONFIG[option][1]())
    return 0


def _include_flags(*folders: str) -> str:
    return " ".join(f"-I{shlex.quote(folder)}" for folder in dict.fromkeys(folders))


def _cflags() -> str:
    from .config import get_include

    return _include_flags(get_include(), sysconfig.get_path("include"), sysconfig.get_path("platinclude"))


def _includes() -> str:
    from .config import get_include

    return _include_flags(get_include())


def _cmake_dir() -> str:
    from .config import get_cmake_dir

    return get_cmake_dir()


_CONFIG: dict[str, tuple[str, Callable[[], str]]] = {
    "--includes": ("the flag of a C compiler, or of Cython, that finds pyop's headers and declarations", _includes),
    "--cflags": ("the same, with Python's headers: for extension modules", _cflags),
    "--cmakedir": ("the folder for CMake's pyop_DIR", _cmake_dir),
    "--version": ("the version of pyop", lambda: __version__),
}


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``pyop-config``, each of which names a flag or folder to print."""
    for option, (text, _) in _CONFIG.items():
        parser.add_argument(option, dest="wanted", action="append_const", const=option, help=text)
    parser.set_defaults(run=config, prog=parser.prog)


def config_main(argv: Sequence[str] | None = None) -> int:
    """Run ``pyop-config`` and return its exit code."""
    parser = argparse.ArgumentParser(prog="pyop-config", description="What it takes to compile against pyop.")
    add_config(parser)
    return run(parser, argv)


def demo(args: argparse.Namespace) -> int:
    """Run the demonstration, or say what it needs."""
    try:
        from .demo import main as run_demo
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"rich", "sklearn"}:
            raise
        print(
            f"python -m pyop demo needs the package that holds {error.name!r}, which is not installed.\n"
            "Install pyop with its demo extra: pip install 'pyop-core[demo]' "
            "(or pip install '.[demo]' in the source tree).",
            file=sys.stderr,
        )
        return 2
    return run_demo(records=args.records, rounds=args.rounds)


def show(args: argparse.Namespace) -> int:
    """Print a model as a table, or write a page that draws it."""
    try:
        from .atomic_file import write_file
        from .onnx.loading import read_model
        from .onnx.show import drawing, table
    except ModuleNotFoundError as error:
        print(f"python -m pyop show: {error}", file=sys.stderr)
        return 2
    try:
        model = read_model(args.model, external=False)
    except (OSError, ValueError) as error:
        print(f"python -m pyop show: {error}", file=sys.stderr)
        return 1
    if args.html is None:
        text = table(model, shutil.get_terminal_size((160, 24)).columns)
        encoding = sys.stdout.encoding or "utf-8"
        print(text.encode(encoding, "replace").decode(encoding))
        return 0
    try:
        write_file(args.html, drawing(model).encode("utf-8", "replace"))
    except OSError as error:
        print(f"python -m pyop show: {error}", file=sys.stderr)
        return 1
    print(f"wrote {args.html}")
    return 0


def check(args: argparse.Namespace) -> int:
    """Check ops and functions, and print a report of each."""
    from . import Op
    from .checking import check as check_op
    from .commands.targets import UnusableTarget, arguments_for, find

    ok = True
    for target in args.targets:
        subject = find(target)
        module, colon, _ = target.partition(":")
        ops = (
            [subject] if colon else [x for x in vars(subject).values() if isinstance(x, Op) and x.__module__ == module]
        )
        if not ops:
            raise UnusableTarget(f"{target} has no ops: name a function of it, {target}:FUNCTION")
        for op in ops:
            example = () if isinstance(op, Op) and not args.example else arguments_for(target, op, args.example)
            try:
                report = check_op(op, *example, seed=args.seed, progress=sys.stderr.isatty())
            except TypeError as error:
                raise UnusableTarget(f"{target}: {error}") from error
            print(report)
            ok = ok and report.passed
    return 0 if ok else 1


def _deferred(name: str) -> Callable[[argparse.Namespace], int]:
    def call(args: argparse.Namespace) -> int:
        from .commands import programs

        status: int = getattr(programs, name)(args)
        return status

    return call


def positive(text: str) -> int:
    """Return a command-line argument as an int; ValueError unless it is at least 1."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of ``python -m pyop`` with its commands and their options."""
    parser = argparse.ArgumentParser(
        prog="python -m pyop", description="Look at this installation of pyop, or see it work on real data."
    )
    parser.add_argument("--version", action="version", version=f"pyop {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    command = commands.add_parser("info", help="versions, compiler, paths: put this in a bug report")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=info)

    command = commands.add_parser("config", help="flags and folders for compilers, Cython and CMake: pyop-config")
    add_config(command)

    command = commands.add_parser("show", help="an ONNX model, or a saved graph, as a table or a drawing")
    command.add_argument("model", help="the file")
    command.add_argument("--html", metavar="FILE", help="write an HTML page with a drawing")
    command.set_defaults(run=show)

    command = commands.add_parser("demo", help="handwritten digits through a pipeline, plain and compiled")
    command.add_argument("--records", type=positive, default=None, help="use only the first N images")
    command.add_argument("--rounds", type=positive, default=15, help="rounds of the timing (default: 15)")
    command.set_defaults(run=demo)

    command = commands.add_parser(
        "check",
        help="call ops and functions and report whether they keep their promises; the exit status says whether all do",
    )
    command.add_argument(
        "targets", nargs="+", metavar="MODULE[:NAME]", help="an op, a function, or all ops of a module"
    )
    _add_example(command)
    command.add_argument("--seed", type=int, default=0, help="of random arguments and directions (default: 0)")
    command.set_defaults(run=check)

    command = commands.add_parser("profile", help="run a script, and print where the time of ops and plans went")
    command.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    command.add_argument("--by", choices=("node", "function", "line"), default="function", help="what a row is of")
    command.add_argument(
        "-o", dest="output", metavar="FILE", help="write every call: a trace, .speedscope.json or .pstats"
    )
    command.add_argument("script")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    command.set_defaults(run=_deferred("profile"))

    command = commands.add_parser("explain", help="compile a function, and print what became of its lines")
    command.add_argument("target", metavar="MODULE:FUNCTION")
    _add_example(command)
    command.set_defaults(run=_deferred("explain"))

    command = commands.add_parser("bench", help="time a function, plain and compiled")
    command.add_argument("target", metavar="MODULE:FUNCTION")
    _add_example(command)
    command.add_argument("--rounds", type=positive, default=15, help="rounds of the timing (default: 15)")
    command.set_defaults(run=_deferred("bench"))
    return parser


def _add_example(command: argparse.ArgumentParser) -> None:
    text = 'an argument as a Python expression over np ("np.ones(3)"); once for each argument'
    command.add_argument("--example", action="append", metavar="EXPR", help=text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    return run(build_parser(), argv)


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Run the command that the arguments name, and return its exit code."""
    args = parser.parse_args(argv)
    try:
        if args.run is None:
            parser.print_help()
            return 0
        from .commands.targets import UnusableTarget

        try:
            status: int = args.run(args)
        except UnusableTarget as error:
            print(error, file=sys.stderr)
            return 2
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has seen enough: `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
