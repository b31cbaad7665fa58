"""What is counted, and what is answered about it."""

from .target import OK, OVER_LIMIT, Case, Unit, descriptor, fresh


class Counting(Case):
    def test_the_first_hit_leaves_all_but_one(self):
        answer = self.ask(descriptor(("fifty", fresh())))
        self.assertEqual(answer.overall_code, OK)
        self.assertEqual(self.codes(answer), [OK])
        self.assertEqual(self.remaining(answer), [49])
        self.assertEqual(answer.statuses[0].current_limit.requests_per_unit, 50)
        self.assertEqual(answer.statuses[0].current_limit.unit, Unit.YEAR)

    def test_exactly_as_many_pass_as_the_limit_says(self):
        key = fresh()
        for hit in range(1, 26):
            answer = self.ask(descriptor(("twenty", key)))
            expected = OK if hit <= 20 else OVER_LIMIT
            self.assertEqual(answer.overall_code, expected, f"hit {hit}")
            self.assertEqual(self.remaining(answer), [max(20 - hit, 0)], f"hit {hit}")

    def test_every_descriptor_is_answered_in_order_and_counted_whatever_the_others_say(self):
        first, second = fresh(), fresh()
        for hit in range(1, 16):
            answer = self.ask(descriptor(("twenty", first)), descriptor(("ten", second)))
            self.assertEqual(self.codes(answer), [OK, OK if hit <= 10 else OVER_LIMIT], f"hit {hit}")
            self.assertEqual(self.remaining(answer), [20 - hit, max(10 - hit, 0)], f"hit {hit}")
            self.assertEqual(answer.overall_code, OK if hit <= 10 else OVER_LIMIT)

    def test_the_same_descriptor_twice_counts_twice(self):
        twice = descriptor(("fifty", fresh()))
        answer = self.ask(twice, twice)
        self.assertEqual(self.remaining(answer), [49, 48])

    def test_callers_have_counters_of_their_own(self):
        self.ask(descriptor(("fifty", fresh())), hits=50)
        self.assertEqual(self.remaining(self.ask(descriptor(("fifty", fresh())))), [49])

    def test_the_hits_of_the_request_count_for_each_descriptor(self):
        answer = self.ask(descriptor(("fifty", fresh())), descriptor(("twenty", fresh())), hits=7)
        self.assertEqual(self.remaining(answer), [43, 13])

    def test_the_hits_of_a_descriptor_win_over_those_of_the_request(self):
        answer = self.ask(descriptor(("fifty", fresh()), hits=3), descriptor(("twenty", fresh())), hits=7)
        self.assertEqual(self.remaining(answer), [47, 13])

    def test_no_hits_look_without_consuming(self):
        key = fresh()
        self.ask(descriptor(("twenty", key)), hits=5)
        for _ in range(3):
            answer = self.ask(descriptor(("twenty", key), hits=0))
            self.assertEqual((answer.overall_code, self.remaining(answer)), (OK, [15]))

    def test_a_look_at_a_limit_just_used_up_is_allowed(self):
        key = fresh()
        self.ask(descriptor(("ten", key)), hits=10)
        answer = self.ask(descriptor(("ten", key), hits=0))
        self.assertEqual((answer.overall_code, self.remaining(answer)), (OK, [0]))

    def test_a_batch_that_crosses_is_refused_whole_and_counted_whole(self):
        key = fresh()
        self.assertEqual(self.remaining(self.ask(descriptor(("ten", key)), hits=8)), [2])
        crossing = self.ask(descriptor(("ten", key)), hits=3)
        self.assertEqual((crossing.overall_code, self.remaining(crossing)), (OVER_LIMIT, [0]))
        self.assertEqual(self.ask(descriptor(("ten", key))).overall_code, OVER_LIMIT)

    def test_a_limit_of_nothing_refuses_everything_but_a_look(self):
        key = fresh()
        self.assertEqual(self.ask(descriptor(("nothing", key))).overall_code, OVER_LIMIT)
        self.assertEqual(self.ask(descriptor(("nothing", fresh()), hits=0)).overall_code, OK)

    def test_every_unit_is_told_and_ends_within_it(self):
        seconds = {
            "second": 1,
            "minute": 60,
            "hour": 3600,
            "day": 86400,
            "week": 7 * 86400,
            "month": 30 * 86400,
            "year": 365 * 86400,
        }
        for unit, length in seconds.items():
            status = self.ask(descriptor((unit, fresh()))).statuses[0]
            self.assertEqual(Unit.Unit.Name(status.current_limit.unit), unit.upper())
            left = status.duration_until_reset.seconds + status.duration_until_reset.nanos / 1e9
            self.assertGreater(left, 0, unit)
            self.assertLessEqual(left, length, unit)

    def test_a_large_limit_is_told_to_the_last_hit(self):
        self.assertEqual(self.remaining(self.ask(descriptor(("year", fresh())))), [3_999_999_999])
