//! The suite that every store passes: what the contract says, case by case, and random histories
//! against a naive model.
//!
//! A store's tests implement [`Subject`] and call the macro
//! [`conformance!`](crate::conformance!), which makes one test of each case.
#![expect(
    clippy::missing_panics_doc,
    reason = "a case panics when the store does not conform; it has no other way to say so"
)]

mod bench;
mod cases;
mod history;
mod late_refunds;
mod lending;
pub mod model;
mod numbers;
mod one_limit;
mod reload;
mod several_limits;
pub mod totals;

use std::future::Future;

use tidegate_algorithms::{Quota, Time};

pub use cases::*;
pub use late_refunds::*;
pub use lending::*;
pub use numbers::*;
pub use one_limit::one_limit_decides_as_the_oracle;
pub use reload::changed_numbers_apply_to_the_old_counts;
pub use several_limits::several_limits_decide_as_the_model;

use crate::Store;

/// A store under test, with its time in the suite's hands.
pub trait Subject {
    /// The store.
    type Store: Store;

    /// A store that remembers nothing, at `now`.
    fn new(now: Time) -> Self;

    /// The store itself.
    fn store(&self) -> &Self::Store;

    /// Moves the store's time to `now`, forwards or backwards.
    fn set_time(&self, now: Time);

    /// Runs one call of the store to its end.
    fn wait<T>(&self, answer: impl Future<Output = T>) -> T;

    /// The nanoseconds that the store's clock can tell apart.
    fn grain() -> u64 {
        1
    }

    /// Whether the store can count such a limit at all.
    fn fits(_quota: &Quota) -> bool {
        true
    }

    /// How many random histories to try, where a store in memory tries `many`.
    fn cases(many: u32) -> u32 {
        many
    }
}

/// Makes a test of each case of the suite, for a [`Subject`](crate::conformance::Subject). With
/// `in one test:` before it, one test of all of them, for a subject that takes long to set up. With
/// `that lends` after it, also those for a [`Lender`](crate::Lender).
#[macro_export]
macro_rules! conformance {
    (in one test: $subject:ty) => {
        #[test]
        fn every_case_of_the_suite() {
            $crate::conformance!(@with together $subject);
        }
    };
    (in one test: $subject:ty, that lends) => {
        #[test]
        fn every_case_of_the_suite() {
            $crate::conformance!(@with together $subject);
            $crate::conformance!(@lending together $subject);
        }
    };
    ($subject:ty, that lends) => {
        $crate::conformance!(@with each $subject);
        $crate::conformance!(@lending each $subject);
    };
    (@lending $form:ident $subject:ty) => {
        $crate::conformance!(@$form $subject:
            loans_given_back_apart_hide_nothing_from_each_other,
            a_bucket_that_was_full_takes_nothing_back,
            what_is_not_given_back_fits_the_limit,
        );
    };
    (@with $form:ident $subject:ty) => {
        $crate::conformance!(@$form $subject:
            one_limit_decides_as_the_oracle,
            several_limits_decide_as_the_model,
            changed_numbers_apply_to_the_old_counts,
            a_refused_request_charges_nothing,
            a_refused_request_reports_what_truly_remains,
            one_admitting_quota_limit_is_enough,
            a_shadow_limit_refuses_nobody,
            every_match_charges_each_limit_alone,
            every_match_counts_refusals_of_a_fixed_window,
            a_counter_named_twice_adds_up,
            a_counter_named_twice_keeps_to_both_numbers,
            a_look_changes_and_creates_nothing,
            a_look_is_denied_until_a_cost_of_1_fits,
            a_look_beside_a_debit_fits_if_the_debit_does,
            a_refund_gives_back_no_more_than_was_taken,
            a_late_refund_goes_to_the_window_of_its_charge,
            late_refunds_make_no_room_of_their_own,
            a_reset_forgets_one_counter,
            a_list_shows_each_live_counter_once,
            the_time_is_the_one_that_decides,
            keys_are_structured,
            limits_and_windows_have_counters_of_their_own,
            too_many_charges_are_an_error,
            no_charges_are_admitted,
            a_wider_limit_goes_on_from_the_old_count,
            a_window_ahead_of_the_clock_stands,
            nothing_wraps_in_ten_years_of_idleness,
            a_log_may_remember_refusals,
            a_refused_request_is_over_no_limit,
            a_soft_limit_hardens_after_its_time,
            soft_for_ends_under_steady_load,
            an_elastic_limit_stretches_with_headroom,
            a_burst_of_one_admits_one_at_a_time,
            a_limit_of_zero_refuses_for_ever,
            a_cost_above_the_limit_never_fits,
        );
    };
    (@together $subject:ty: $($case:ident),* $(,)?) => {
        $(
            println!("{}", stringify!($case));
            $crate::conformance::$case::<$subject>();
        )*
    };
    (@each $subject:ty: $($case:ident),* $(,)?) => {
        $(
            #[test]
            fn $case() {
                $crate::conformance::$case::<$subject>();
            }
        )*
    };
    ($subject:ty) => {
        $crate::conformance!(@with each $subject);
    };
}
