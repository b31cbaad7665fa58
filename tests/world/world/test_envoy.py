"""Envoy asks Tidegate, and its clients see what came of it."""

import json

from .process import ROOT, World, eventually, free_port, get, raw_get, tool
from .tidegate import Tidegate, start_api


def start_envoy(test: World, config, port: int):
    # Without a fixed base id two Envoys on one machine would share their shared memory.
    command = [tool("envoy"), "-c", str(config), "--use-dynamic-base-id", "--concurrency", "1", "-l", "warning"]
    return test.start(*command, port=port, name="envoy")


class Envoy(World):
    def deployed(self):
        """The file in deploy/, with free ports in it."""
        api, self.clients = start_api(self), free_port()
        self.tidegate = Tidegate(self, rules=ROOT / "deploy/rules/example.yaml")
        config = self.configure(
            ROOT / "deploy/envoy/envoy.yaml",
            **{
                "port_value: 10000": f"port_value: {self.clients}",
                "port_value: 9000": f"port_value: {api}",
                "port_value: 8081": f"port_value: {self.tidegate.grpc}",
            },
        )
        start_envoy(self, config, self.clients)

    def featured(self, *flags: str):
        api, self.clients, self.strict = start_api(self), free_port(), free_port()
        self.tidegate = Tidegate(self, *flags)
        config = self.configure(
            ROOT / "tests/world/envoy/features.yaml",
            CLIENTS=self.clients,
            STRICT=self.strict,
            **{"port_value: API": f"port_value: {api}", "port_value: TIDEGATE": f"port_value: {self.tidegate.grpc}"},
        )
        start_envoy(self, config, self.strict)

    def authorized(self):
        """The file in deploy/ with which Envoy asks /v1/authorize."""
        api, self.clients = start_api(self), free_port()
        rules, settings = self.folder / "rules.yaml", self.folder / "tidegate.yaml"
        limit = "{unit: hour, requests_per_unit: 2}"
        rules.write_text(f"domain: api\ndescriptors: [{{key: api_key, rate_limit: {limit}}}]\n")
        settings.write_text("authorize: {header_lines: joined, descriptors: [{api_key: 'header:x-api-key'}]}\n")
        self.tidegate = Tidegate(self, "--config", str(settings), rules=rules)
        config = self.configure(
            ROOT / "deploy/envoy/ext_authz.yaml",
            **{
                "port_value: 10000": f"port_value: {self.clients}",
                "port_value: 9000": f"port_value: {api}",
                "port_value: 8080": f"port_value: {self.tidegate.http}",
                "cluster: tidegate, timeout: 0.25s": "cluster: tidegate, timeout: 5s",
            },
        )
        start_envoy(self, config, self.clients)

    def test_authorize_denies_header_lines_that_differ(self):
        self.authorized()
        secret, other = b"x-api-key: secret", b"x-api-key: 1"
        statuses = [raw_get(self.clients, secret) for _ in range(3)]
        self.assertEqual(statuses, [200, 200, 429])
        # Whichever line the API behind reads, the key that is used up does not get there.
        for lines in ((secret, other), (other, secret), (b"x-api-key: secret,1",), (secret, b"x-api-key:")):
            self.assertEqual(raw_get(self.clients, *lines), 400, lines)
        self.assertEqual(raw_get(self.clients, secret, secret), 429, "the same line twice is one value")
        self.assertEqual(raw_get(self.clients, other), 200)
        self.assertEqual(raw_get(self.clients), 200, "no header, no descriptor, no limit")
        denied = get(self.clients, headers={"x-api-key": "secret"})
        self.assertGreaterEqual(int(denied.headers["retry-after"]), 1)

    def test_the_file_in_deploy_limits_and_tells(self):
        self.deployed()
        answers = [get(self.clients, headers={"x-user-id": "42"}) for _ in range(40)]
        first, refused = answers[0], [answer for answer in answers if answer.status == 429]
        self.assertEqual((first.status, first.body), (200, "the api\n"))
        self.assertIn("x-ratelimit-limit", first.headers)
        self.assertIn("x-ratelimit-remaining", first.headers)
        self.assertNotIn("retry-after", first.headers)
        self.assertTrue(refused, "nobody was refused")
        self.assertGreaterEqual(int(refused[0].headers["retry-after"]), 1)
        self.assertEqual(refused[0].headers["content-type"], "application/problem+json")
        problem = json.loads(refused[0].body)
        self.assertEqual(problem["status"], 429)
        self.assertTrue(problem["violated-policies"])

    def test_the_file_in_deploy_refuses_several_names(self):
        self.deployed()
        name, other = b"x-user-id: 42", b"x-user-id: 1"
        self.assertEqual(raw_get(self.clients, name), 200)
        for lines in ((name, other), (other, name), (b"x-user-id: 42,1",), (name, b"x-user-id:"), (name, name)):
            self.assertEqual(raw_get(self.clients, *lines), 400, lines)
        self.assertEqual(raw_get(self.clients, other), 200)
        self.assertEqual(raw_get(self.clients), 200)

    def test_exactly_the_limit_passes(self):
        self.featured()
        statuses = [get(self.clients, headers={"x-user": "a"}).status for _ in range(5)]
        self.assertEqual(statuses, [200, 200, 200, 429, 429])
        self.assertEqual(get(self.clients, headers={"x-user": "b"}).status, 200)
        self.assertEqual(get(self.clients).status, 200, "no header, no descriptor, no limit")

    def test_a_denial_may_have_no_body(self):
        settings = self.folder / "tidegate.yaml"
        settings.write_text("answers: {body: none}\n")
        self.featured("--config", str(settings))
        denied = [get(self.clients, headers={"x-user": "a"}) for _ in range(4)][-1]
        self.assertEqual((denied.status, denied.body), (429, ""))
        self.assertNotIn("content-type", denied.headers)
        self.assertIn("retry-after", denied.headers)

    def test_bytes_that_are_not_utf8_are_counted(self):
        self.featured()
        for value in (b"bob\xff", b"\xff", b"\xc3(", b"\xed\xa0\x80"):
            statuses = [raw_get(self.clients, b"x-user: " + value) for _ in range(5)]
            self.assertEqual(statuses, [200, 200, 200, 429, 429], value)
        self.assertEqual(get(self.clients, headers={"x-user": "bob"}).status, 200)

    def test_of_several_lines_the_first_is_asked_about(self):
        self.featured()
        name, other = b"x-user: a", b"x-user: b"
        self.assertEqual([raw_get(self.clients, name, other) for _ in range(4)], [200, 200, 200, 429])
        self.assertEqual(raw_get(self.clients, name), 429)
        self.assertEqual(raw_get(self.clients, other), 200)

    def test_headers_count_down(self):
        self.featured()
        answers = [get(self.clients, headers={"x-user": "a"}) for _ in range(4)]
        self.assertEqual([it.headers["x-ratelimit-remaining"] for it in answers], ["2", "1", "0", "0"])
        self.assertEqual({it.headers["x-ratelimit-limit"] for it in answers}, {"3"})

    def test_a_shadow_rule_lets_pass(self):
        self.featured()
        statuses = [get(self.clients, "/watched", {"x-user": "a"}).status for _ in range(3)]
        self.assertEqual(statuses, [200, 200, 200])

    def test_a_route_may_cost_more(self):
        self.featured()
        answers = [get(self.clients, "/tokens", {"x-user": "a"}) for _ in range(3)]
        told = [(it.status, it.headers.get("x-ratelimit-remaining")) for it in answers]
        self.assertEqual(told, [(200, "6"), (200, "2"), (429, "2")])

    def test_envoy_may_bring_the_limit(self):
        self.featured()
        statuses = [get(self.clients, "/overridden", {"x-user": "a"}).status for _ in range(2)]
        self.assertEqual(statuses, [200, 429])

    def test_death_and_return(self):
        self.featured()
        asked = {"x-user": "a"}
        self.assertEqual([get(self.clients, headers=asked).status for _ in range(4)], [200, 200, 200, 429])
        self.tidegate.die()
        # failure_mode_deny: false lets pass, true refuses.
        self.assertEqual(get(self.clients, headers=asked).status, 200)
        self.assertEqual(get(self.strict, headers=asked).status, 500)
        self.tidegate.start()
        # Envoy connects again by itself, and a server that forgot everything counts from the beginning.
        fresh = {"x-user": "b"}
        eventually("Envoy asks again", lambda: "x-ratelimit-limit" in get(self.strict, headers=fresh).headers)
        eventually("the limit holds again", lambda: get(self.clients, headers=fresh).status == 429)
