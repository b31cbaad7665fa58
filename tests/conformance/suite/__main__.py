"""Reads the command line and runs the cases."""

import argparse
import sys
import unittest

from . import target

CONTRACT = ["counting", "matching", "modes", "overrides", "requests", "http_json", "health"]
TIDEGATE = ["tidegate"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/conformance/run", description=__doc__)
    parser.add_argument("--grpc", required=True, metavar="HOST:PORT", help="the gRPC listener")
    parser.add_argument("--http", metavar="HOST:PORT", help="the HTTP listener; without it /json is not asked")
    parser.add_argument(
        "--only",
        choices=["contract", "tidegate"],
        help="contract: what envoyproxy/ratelimit does too; tidegate: what only Tidegate does",
    )
    return parser.parse_args()


def modules(args: argparse.Namespace) -> list[str]:
    chosen = {"contract": CONTRACT, "tidegate": TIDEGATE, None: CONTRACT + TIDEGATE}[args.only]
    if args.http is None and "http_json" in chosen:
        print("no --http: the cases of /json are left out", file=sys.stderr)
        chosen = [name for name in chosen if name != "http_json"]
    return [f"suite.{name}" for name in chosen]


def main() -> int:
    args = arguments()
    target.choose(args.grpc, args.http)
    if not target.answers():
        print(f"no gRPC server answers at {args.grpc}; start it first, as README.md beside run shows", file=sys.stderr)
        return 1
    suite = unittest.defaultTestLoader.loadTestsFromNames(modules(args))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if result.testsRun == 0:
        print("no case ran", file=sys.stderr)
        return 1
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
