//! Floods of another limit, of several limits and of several threads: what others get is the same as in a flood of
//! their own limit.

use crate::mixed::{Mix, MixedAttack};

#[test]
fn a_flood_of_another_limit_switches_no_limit_off() {
    check_held(Mix::OtherLimit);
}

#[test]
fn a_flood_of_denied_keys_of_another_limit_switches_no_limit_off() {
    check_held(Mix::OtherLimitDenied);
}

#[test]
fn a_flood_of_several_limits_switches_no_limit_off() {
    check_held(Mix::SeveralLimits);
}

#[test]
fn a_flood_of_several_limits_under_every_match_switches_no_limit_off() {
    check_held(Mix::SeveralLimitsEveryMatch);
}

#[test]
fn a_flood_of_denied_keys_under_every_match_switches_no_limit_off() {
    check_held(Mix::EveryMatch);
}

#[test]
fn a_flood_of_several_threads_switches_no_limit_off() {
    check_held(Mix::Threads);
}

fn check_held(mix: Mix) {
    for attack in mix.attacks(1) {
        let MixedAttack {
            attack,
            flood,
            target,
            mix,
        } = attack;
        let outcome = attack.by(&flood, &target);
        let text = format!(
            "{mix:?}, {} flooded by {}: {outcome:?}",
            target.name, flood.name
        );
        println!("{text}");
        assert!(outcome.is_held(), "{text}");
    }
}
