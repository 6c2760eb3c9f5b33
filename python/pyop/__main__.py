"""The command line: ``python -m pyop {info, config, show, demo, check}``, and ``pyop-config``."""

from __future__ import annotations

import argparse
import importlib
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

    config = build_config() | {"paths": {"include": get_include(), "cmake": get_cmake_dir()}}
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
    """What to print."""
    for option, (text, _) in _CONFIG.items():
        parser.add_argument(option, dest="wanted", action="append_const", const=option, help=text)
    parser.set_defaults(run=config, prog=parser.prog)


def config_main(argv: Sequence[str] | None = None) -> int:
    """``pyop-config``."""
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
        with open(args.html, "w", encoding="utf-8") as page:
            page.write(drawing(model))
    except OSError as error:
        print(f"python -m pyop show: {error}", file=sys.stderr)
        return 1
    print(f"wrote {args.html}")
    return 0


def check(args: argparse.Namespace) -> int:
    """Check ops, and print a report of each."""
    import numpy as np

    from . import Op
    from .checking import check as check_op

    ok = True
    for target in args.targets:
        module, colon, path = target.partition(":")
        try:
            found: object = importlib.import_module(module)
            for name in path.split(".") if colon else ():
                found = getattr(found, name)
        except (ImportError, AttributeError, ValueError) as error:
            print(f"{target}: {error}", file=sys.stderr)
            return 2
        ops = (
            [found] if colon else [op for op in vars(found).values() if isinstance(op, Op) and op.__module__ == module]
        )
        example = tuple(eval(text, {"np": np, "numpy": np}) for text in args.example or ())
        if not ops:
            print(f"{target} has no ops", file=sys.stderr)
            return 2
        for op in ops:
            try:
                report = check_op(op, *example, seed=args.seed)  # type: ignore[arg-type]
            except TypeError as error:
                print(f"{target}: {error}", file=sys.stderr)
                return 2
            print(report)
            ok = ok and report.passed
    return 0 if ok else 1


def positive(text: str) -> int:
    """An argument that counts something."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
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
        "check", help="call ops and report whether they keep their promises; the exit status says whether all do"
    )
    command.add_argument("targets", nargs="+", metavar="MODULE[:OP]", help="an op, or all ops of a module")
    command.add_argument(
        "--example",
        action="append",
        metavar="EXPR",
        help='an argument as a Python expression over np ("np.ones(3)"); once for each argument',
    )
    command.add_argument("--seed", type=int, default=0, help="of random arguments and directions (default: 0)")
    command.set_defaults(run=check)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    return run(build_parser(), argv)


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Do what the arguments say."""
    args = parser.parse_args(argv)
    try:
        if args.run is None:
            parser.print_help()
            return 0
        status: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has seen enough: `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
