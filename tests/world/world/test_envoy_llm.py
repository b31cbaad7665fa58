"""The page docs/llm-tokens.md, run with the Envoy of deploy/ as it is printed but for the ports."""

import json
import re
import textwrap
import time
import urllib.request

from .process import ROOT, World, eventually, free_port, get
from .test_envoy import start_envoy
from .tidegate import Api, Tidegate, start_api

PAGE = ROOT / "docs/llm-tokens.md"
# The numbers of the page.
LIMIT, DEBT, PER_SECOND = 20_000, 40_000, 20_000 / 60


class Model(Api):
    """A language model: the path says how many tokens the answer takes, and a header of the answer as well."""

    def end_headers(self):
        self.send_header("x-total-tokens", self.path.removeprefix("/"))
        super().end_headers()


class EnvoyLlm(World):
    def setUp(self):
        super().setUp()
        blocks = dict(re.findall(r"^```yaml (\S+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
        self.assertEqual(sorted(blocks), ["filter", "route", "rules.yaml"])
        rules = self.folder / "rules.yaml"
        rules.write_text(blocks["rules.yaml"])
        self.tidegate = Tidegate(self, rules=rules)
        self.clients = free_port()
        route, filters = "route: {cluster: api}\n", "http_filters:\n"
        config = self.configure(
            ROOT / "deploy/envoy/envoy.yaml",
            **{
                "port_value: 10000": f"port_value: {self.clients}",
                "port_value: 9000": f"port_value: {start_api(self, Model)}",
                "port_value: 8081": f"port_value: {self.tidegate.grpc}",
                "domain: example": "domain: llm",
                "timeout: 0.05s": "timeout: 5s",
                route: route + textwrap.indent(blocks["route"], " " * 26),
                filters: filters + textwrap.indent(blocks["filter"], " " * 18),
            },
        )
        start_envoy(self, config, self.clients)

    def ask(self, user: str, tokens: int):
        return get(self.clients, f"/{tokens}", {"x-user-id": user})

    def used(self, user: str) -> int:
        """The tokens in use, as a look sees them; those that are owed not."""
        question = {"domain": "llm", "descriptors": [{"user_tokens": user}], "cost": 0}
        return LIMIT - self.check(question)["limits"][0]["remaining"]

    def check(self, question) -> dict:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.tidegate.http}/v1/check", json.dumps(question).encode(), method="POST"
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def wait_until_denied(self, user: str):
        """A debit comes after its answer, so the next look may be before it."""
        return eventually("the debit is made", lambda: (it := self.ask(user, 0)).status == 429 and it)

    def test_a_user_has_as_many_answers_as_tokens(self):
        start, allowed = time.monotonic(), 0
        while (answer := self.ask("a", 500)).status == 200:
            allowed += 1
        refilled = (time.monotonic() - start) * PER_SECOND
        self.assertEqual(answer.status, 429)
        self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        # 40 answers, what came in meanwhile, and the last one that needed one token only and was under way.
        self.assertGreaterEqual(allowed, 40)
        self.assertLessEqual(allowed, 42 + refilled / 500)
        self.assertEqual(self.ask("b", 500).status, 200, "another user has tokens of its own")
        self.assertEqual(get(self.clients, "/500").status, 200, "no header, no descriptor, no limit")

    def test_an_answer_costs_what_it_used_and_not_one(self):
        self.assertEqual(self.ask("a", 7_000).status, 200)
        # Less what has come in since.
        eventually("the debit is made", lambda: self.used("a") > 1)
        self.assertLessEqual(self.used("a"), 7_000)
        self.assertEqual(self.used("b"), 0)

    def test_an_answer_may_cost_more_than_is_left(self):
        for user, tokens, debt in (("a", LIMIT + 15_000, 15_000), ("b", 1_000_000, DEBT)):
            start = time.monotonic()
            self.assertEqual(self.ask(user, tokens).status, 200)
            denied = self.wait_until_denied(user)
            # The time in which the debt and one token come in, less what the test took.
            longest, took = debt / PER_SECOND + 1, time.monotonic() - start
            self.assertLessEqual(int(denied.headers["retry-after"]), longest)
            self.assertGreater(int(denied.headers["retry-after"]), longest - took - 2)

    def test_a_user_comes_back_when_the_debt_is_repaid(self):
        self.assertEqual(self.ask("a", LIMIT + 2_000).status, 200)
        self.wait_until_denied("a")
        eventually("the bucket is above zero", lambda: self.ask("a", 0).status == 200)

    def test_a_refund_repays(self):
        self.assertEqual(self.ask("a", LIMIT + 30_000).status, 200)
        self.wait_until_denied("a")
        self.check({"domain": "llm", "descriptors": [{"user_tokens": "a"}], "refund": 30_001})
        self.assertEqual(self.ask("a", 0).status, 200)
