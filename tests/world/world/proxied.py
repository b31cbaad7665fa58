"""What holds of every proxy that asks Tidegate at /v1/authorize, with its file in deploy/."""

import json

from .process import eventually, get, raw_get


class Proxied:
    """Tests for a World that has started a proxy at self.clients and self.tidegate behind it."""

    def test_exactly_the_limit_reaches_the_api(self):
        answers = [get(self.clients) for _ in range(4)]
        self.assertEqual([it.status for it in answers], [200, 200, 200, 429])
        self.assertEqual([it.headers["x-ratelimit-limit"] for it in answers], ["3"] * 4)
        self.assertEqual([it.headers["x-ratelimit-remaining"] for it in answers], ["2", "1", "0", "0"])
        self.assertEqual([it.body for it in answers[:3]], ["the api\n"] * 3)
        self.assertNotIn("retry-after", answers[0].headers)

    def test_who_is_refused_is_told_when_to_come_back(self):
        refused = [get(self.clients) for _ in range(4)][3]
        self.assertGreaterEqual(int(refused.headers["retry-after"]), 1)
        self.assertEqual(refused.headers["content-type"], "application/problem+json")
        self.assertEqual(refused.headers["cache-control"], "no-store")
        problem = json.loads(refused.body)
        self.assertEqual(problem["status"], 429)
        self.assertEqual(problem["title"], "Quota Exceeded")

    def test_where_no_wait_helps_none_is_told(self):
        refused = get(self.clients, "/banned")
        self.assertEqual(refused.status, 429)
        self.assertNotIn("retry-after", refused.headers)

    def test_path_and_method_are_those_of_the_client(self):
        statuses = [get(self.clients, path).status for path in ("/login?next=/", "//login", "/%6cogin")]
        self.assertEqual(statuses, [200, 429, 429])

    def test_no_client_chooses_what_it_is_known_by(self):
        spoofed = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Uri": "/elsewhere", "X-Forwarded-Method": "PUT"}
        self.assertEqual([get(self.clients, headers=spoofed).status for _ in range(4)], [200, 200, 200, 429])
        self.assertEqual(get(self.clients, "/login").status, 429, "its address is used up")

    def test_no_client_makes_the_question_too_long_to_be_asked(self):
        for _ in range(3):
            get(self.clients)
        for lines in (85, 96):
            many = {f"X-Header-{number}": "x" for number in range(lines)}
            self.assertNotEqual(get(self.clients, headers=many).status, 200)
        large = {"X-Header": "x" * 15_000}
        self.assertNotEqual(get(self.clients, headers=large).status, 200)
        self.assertEqual(get(self.clients).status, 429, "it still stands")

    def test_bytes_that_are_not_utf8_switch_no_limit_off(self):
        odd = [b"X-User: bob\xff", b"Cookie: \xff\xfe", b"\x58: \xc3("]
        self.assertEqual([raw_get(self.clients, *odd) for _ in range(4)], [200, 200, 200, 429])

    def test_death_and_return(self):
        self.assertEqual([get(self.clients).status for _ in range(4)], [200, 200, 200, 429])
        self.tidegate.die()
        unlimited = get(self.clients)
        self.assertEqual((unlimited.status, unlimited.body), (200, "the api\n"))
        self.assertNotIn("x-ratelimit-limit", unlimited.headers)
        self.tidegate.start()
        eventually("it asks again", lambda: "x-ratelimit-limit" in get(self.clients).headers)
