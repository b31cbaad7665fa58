"""The same question over HTTP."""

import urllib.request

from .target import Case, fresh


class HttpJson(Case):
    def request(self, key: str, domain="contract"):
        return {"domain": domain, "descriptors": [{"entries": [{"key": "named", "value": key}]}]}

    def test_200_up_to_the_limit_and_429_above(self):
        request = self.request(fresh())
        statuses = [self.post(request)[0] for _ in range(7)]
        self.assertEqual(statuses, [200] * 5 + [429] * 2)

    def test_the_answer_is_that_of_the_protocol(self):
        _, answer = self.post(self.request(fresh()))
        self.assertEqual(answer["overallCode"], "OK")
        self.assertEqual(answer["statuses"][0]["currentLimit"]["requestsPerUnit"], 5)
        self.assertEqual(answer["statuses"][0]["limitRemaining"], 4)

    def test_what_is_no_request_is_400(self):
        for body in [b"}", b"", self_domain_empty()]:
            self.assertEqual(self.post_json(body)[0], 400, body)

    def test_healthcheck(self):
        with urllib.request.urlopen(f"http://{self.http}/healthcheck", timeout=10) as answer:
            self.assertEqual((answer.status, answer.read()), (200, b"OK"))


def self_domain_empty() -> bytes:
    return b'{"domain": "", "descriptors": [{"entries": [{"key": "named", "value": "x"}]}]}'
