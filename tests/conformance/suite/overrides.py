"""Limits that come with the request."""

from .target import OK, OVER_LIMIT, Case, Unit, descriptor, fresh


class Overrides(Case):
    def test_an_override_is_used_instead_of_the_rules(self):
        asked = descriptor(("fifty", fresh()), limit=(2, Unit.YEAR))
        answers = [self.ask(asked) for _ in range(3)]
        self.assertEqual([answer.overall_code for answer in answers], [OK, OK, OVER_LIMIT])
        self.assertEqual(answers[0].statuses[0].current_limit.requests_per_unit, 2)
        self.assertEqual(answers[0].statuses[0].current_limit.unit, Unit.YEAR)

    def test_an_override_needs_no_rule(self):
        asked = descriptor(("nobody", fresh()), limit=(1, Unit.YEAR))
        self.assertEqual([self.ask(asked).overall_code for _ in range(2)], [OK, OVER_LIMIT])

    def test_an_override_in_an_unknown_domain_is_not_used(self):
        asked = descriptor(("fifty", fresh()), limit=(1, Unit.YEAR))
        domain = f"no-{fresh()}"
        self.assertEqual([self.ask(asked, domain=domain).overall_code for _ in range(2)], [OK, OK])
