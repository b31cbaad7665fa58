"""Which rule is taken."""

from .target import OK, Case, descriptor, fresh

UNLIMITED = 2**32 - 1


class Matching(Case):
    def rule_of(self, *entries):
        answer = self.ask(descriptor(*entries))
        self.assertEqual(answer.overall_code, OK)
        status = answer.statuses[0]
        return status.current_limit.name if status.HasField("current_limit") else None

    def test_a_name_is_told(self):
        self.assertEqual(self.rule_of(("named", fresh())), "by_name")

    def test_the_exact_value_goes_before_patterns_and_those_before_any(self):
        self.assertEqual(self.rule_of(("route", "exact")), "exact_route")
        self.assertEqual(self.rule_of(("route", f"pre{fresh()}")), "prefix_route")
        self.assertEqual(self.rule_of(("route", f"{fresh()}fix")), "suffix_route")
        self.assertEqual(self.rule_of(("route", fresh())), "any_route")

    def test_of_two_patterns_the_first_in_the_file_is_taken(self):
        self.assertEqual(self.rule_of(("route", "prefix")), "prefix_route")

    def test_values_are_told_apart_by_case(self):
        self.assertEqual(self.rule_of(("route", "EXACT")), "any_route")

    def test_a_rule_holds_only_at_its_own_depth(self):
        value = fresh()
        self.assertEqual(self.rule_of(("outer", value)), "outer_only")
        self.assertEqual(self.rule_of(("outer", value), ("inner", value)), "inner_any")
        self.assertIsNone(self.rule_of(("outer", value), ("inner", value), ("deepest", value)))
        self.assertIsNone(self.rule_of(("inner", value)))

    def test_what_was_chosen_is_not_taken_back(self):
        value = fresh()
        self.assertIsNone(self.rule_of(("outer", value), ("inner", "special")))
        self.assertEqual(self.rule_of(("outer", value), ("inner", "special"), ("deepest", value)), "deepest")

    def test_the_order_of_entries_matters(self):
        self.assertIsNone(self.rule_of(("inner", "x"), ("outer", "x")))

    def test_an_unknown_key_has_no_limit(self):
        answer = self.ask(descriptor(("nobody", fresh())))
        self.assertEqual(self.codes(answer), [OK])
        self.assertFalse(answer.statuses[0].HasField("current_limit"))
        self.assertFalse(answer.statuses[0].HasField("duration_until_reset"))

    def test_an_unknown_domain_has_no_limit(self):
        answer = self.ask(descriptor(("fifty", fresh())), domain=f"no-{fresh()}")
        self.assertEqual((answer.overall_code, self.codes(answer)), (OK, [OK]))
        self.assertFalse(answer.statuses[0].HasField("current_limit"))

    def test_a_rule_without_a_limit_lets_pass(self):
        self.assertIsNone(self.rule_of(("allowed", fresh())))

    def test_unlimited_leaves_as_many_as_can_be_told(self):
        answer = self.ask(descriptor(("unlimited", fresh())))
        self.assertEqual((answer.overall_code, self.remaining(answer)), (OK, [UNLIMITED]))
        self.assertFalse(answer.statuses[0].HasField("current_limit"))
