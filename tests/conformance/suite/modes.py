"""Shadow, quota, shared thresholds, and limits in place of others."""

from .target import OK, OVER_LIMIT, Case, descriptor, fresh


class Modes(Case):
    def test_a_shadow_rule_counts_and_lets_pass(self):
        key = fresh()
        for _ in range(3):
            answer = self.ask(descriptor(("shadowed", key)))
            self.assertEqual((answer.overall_code, self.codes(answer)), (OK, [OK]))
        self.assertEqual(self.remaining(answer), [0])

    def test_quota_rules_refuse_only_when_all_of_them_are_used_up(self):
        a, b = descriptor(("quota_a", fresh())), descriptor(("quota_b", fresh()))
        self.assertEqual(self.ask(a, b).overall_code, OK)
        self.assertEqual(self.ask(a, b).overall_code, OK)
        self.assertEqual(self.ask(a, b).overall_code, OVER_LIMIT)

    def test_an_ordinary_refusal_refuses_whatever_the_quotas_say(self):
        answer = self.ask(descriptor(("quota_a", fresh())), descriptor(("nothing", fresh())))
        self.assertEqual(answer.overall_code, OVER_LIMIT)

    def test_a_shared_threshold_is_one_counter_for_all_that_match(self):
        # The value that is counted is the pattern, so a run that comes after another finds it used up.
        remaining = [self.remaining(self.ask(descriptor(("shared", f"files/{fresh()}"))))[0] for _ in range(4)]
        self.assertEqual(remaining[-1], 0)
        self.assertEqual(self.ask(descriptor(("shared", f"files/{fresh()}"))).overall_code, OVER_LIMIT)

    def test_without_it_each_value_has_its_own(self):
        for _ in range(4):
            self.assertEqual(self.remaining(self.ask(descriptor(("apart", f"files/{fresh()}")))), [2])

    def test_a_limit_puts_another_out_of_force(self):
        ordinary, premium = descriptor(("ordinary", fresh())), descriptor(("premium", fresh()))
        for _ in range(3):
            self.assertEqual(self.ask(ordinary, premium).overall_code, OK)
        self.assertEqual(self.ask(ordinary, premium).overall_code, OVER_LIMIT)
        # Nothing was charged to the one that was replaced.
        self.assertEqual(self.ask(ordinary).overall_code, OK)
        self.assertEqual(self.ask(ordinary).overall_code, OVER_LIMIT)
