"""The same random requests to two servers; what they decide must be the same."""

import argparse
import random
import sys

import grpc

from .stubs import rls, rls_grpc
from .target import PATIENCE_SECONDS, Unit, descriptor

# Rules whose windows are long, so that both servers see a request in the same one.
LIMITED = ["fifty", "twenty", "ten", "named", "nothing", "shadowed", "quota_a", "quota_b", "ordinary", "premium", "apart"]
FREE = ["unlimited", "allowed", "nobody"]

# How many differences are shown.
MOST_SHOWN = 10


def random_entries(draw: random.Random, run: str):
    caller = f"{run}-{draw.randrange(8)}"
    kind = draw.random()
    if kind < 0.6:
        key = draw.choice(LIMITED)
        return [(key, f"files/{caller}" if key == "apart" else caller)]
    if kind < 0.7:
        return [("route", draw.choice(["exact", f"pre{caller}", f"{caller}fix", caller, "prefix"]))]
    if kind < 0.85:
        inner = draw.choice([caller, "special"])
        path = [("outer", caller), ("inner", inner), ("deepest", caller)]
        return path[: draw.randint(1, 3)]
    if kind < 0.9:
        return [("shared", f"files/{caller}")]
    return [(draw.choice(FREE), caller)]


def random_descriptor(draw: random.Random, run: str):
    hits = draw.choice([0, 1, 2, 7]) if draw.random() < 0.2 else None
    if draw.random() < 0.1:
        return random_override(draw, run, hits)
    return descriptor(*random_entries(draw, run), hits=hits)


def random_override(draw: random.Random, run: str, hits):
    # Each on values of its own: envoyproxy/ratelimit keeps neither rule nor unit in a counter's key, so
    # that an override and a rule on the same entries share a counter there.
    unit = draw.choice([Unit.MONTH, Unit.YEAR])
    entry = (draw.choice(LIMITED + FREE), f"{run}-override-{unit}-{draw.randrange(8)}")
    return descriptor(entry, hits=hits, limit=(draw.randrange(5), unit))


def random_request(draw: random.Random, run: str):
    descriptors = [random_descriptor(draw, run) for _ in range(draw.choice([1, 1, 1, 2, 2, 3, 5]))]
    hits = draw.choice([0, 0, 0, 1, 3])
    return rls.RateLimitRequest(domain="contract", descriptors=descriptors, hits_addend=hits)


def decided(response):
    """What both servers must agree on. Durations are left out: the two are not asked at one instant."""

    def status(it):
        limit = it.current_limit
        told = (limit.name, limit.requests_per_unit, limit.unit) if it.HasField("current_limit") else None
        return (it.code, told, it.limit_remaining)

    return (response.overall_code, [status(it) for it in response.statuses])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/conformance/compare", description=__doc__)
    parser.add_argument("--grpc", required=True, metavar="HOST:PORT", help="one server")
    parser.add_argument("--other", required=True, metavar="HOST:PORT", help="the other one")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> int:
    args = arguments()
    draw = random.Random(args.seed)
    stubs = [rls_grpc.RateLimitServiceStub(grpc.insecure_channel(address)) for address in (args.grpc, args.other)]
    differences = refused = 0
    for number in range(args.requests):
        # Callers change now and then: else everybody would be over every limit before long.
        request = random_request(draw, f"s{args.seed}-{number // 200}")
        ours, theirs = (decided(stub.ShouldRateLimit(request, timeout=PATIENCE_SECONDS)) for stub in stubs)
        refused += ours[0] == rls.RateLimitResponse.OVER_LIMIT
        if ours != theirs:
            differences += 1
            if differences <= MOST_SHOWN:
                print(f"request {number}:\n{request}--grpc:  {ours}\n--other: {theirs}\n")
    print(f"{args.requests} requests, {refused} of them refused: {differences} differences")
    return 0 if differences == 0 and args.requests > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
