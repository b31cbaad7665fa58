use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec, Rounding};
use tidegate_store::{CounterKey, LimitId};

use super::{Installation, Key, MARK_DIGITS};

fn quota(window: Duration, algorithm: Algorithm) -> Quota {
    let spec = QuotaSpec {
        limit: 5,
        window,
        algorithm,
        allowance: Allowance::Hard,
    };
    Quota::new(&spec).expect("valid")
}

fn key(limit: u128, values: &[&str]) -> String {
    let limit = LimitId(limit);
    let quota = quota(Duration::from_mins(1), Algorithm::FixedWindow);
    let key = Key::new(CounterKey { limit, values }, &quota);
    String::from_utf8(key.as_ref().to_vec()).expect("text")
}

/// The part that Redis hashes, as its documentation says: between the first brace and the next closing one.
fn tag(key: &str) -> &str {
    let rest = &key[key.find('{').expect("a tag") + 1..];
    &rest[..rest.find('}').expect("its end")]
}

#[test]
fn a_key_can_be_read() {
    let end = "AAAAAAAAAAAAAAAAAAAAABf60s:3:ann2:42";
    assert_eq!(key(1, &["ann", "42"])[9..], *end);
    assert_eq!(key(1, &[])[9..], *"AAAAAAAAAAAAAAAAAAAAABf60s:");
}

#[test]
fn values_are_structured() {
    let long = "x".repeat(300);
    let callers: [&[&str]; 9] = [
        &[],
        &[""],
        &["", ""],
        &["abc"],
        &["a", "bc"],
        &["ab", "c"],
        &["a2:bc"],
        &[&long, "y"],
        &[&long[1..], "xy"],
    ];
    let mut keys: Vec<_> = callers.iter().map(|values| key(1, values)).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), callers.len());
    assert!(
        keys.iter().all(|key| key.len() <= 112),
        "no room of the heap"
    );
}

#[test]
fn the_tag_is_ours_whatever_a_client_says() {
    for value in ["}", "{}", "{x}", "a}b{c}", "{"] {
        let tag = tag(&key(1, &[value])).to_owned();
        assert_eq!(tag.len(), 4, "{value}");
        assert!(!tag.contains(['{', '}']), "{value}");
    }
}

/// A note lies in the slot of its counter, and nobody who looks for counters finds it.
#[test]
fn a_note_is_beside_its_counter() {
    let quota = quota(Duration::from_mins(1), Algorithm::FixedWindow);
    for values in [&[][..], &["ann"], &["}{"], &["x{y}"]] {
        let limit = LimitId(7);
        let counter = Key::new(CounterKey { limit, values }, &quota);
        let note = counter.note().to_string();
        let counter = counter.to_string();
        assert_eq!(tag(&note), tag(&counter), "{values:?}");
        assert_eq!(note.strip_prefix("tg1:b"), counter.strip_prefix("tg1"));
        assert!(!note.starts_with("tg1{"));
    }
}

#[test]
fn limits_of_one_caller_share_a_tag_and_callers_spread() {
    assert_eq!(tag(&key(1, &["ann"])), tag(&key(2, &["ann"])));
    assert_ne!(tag(&key(1, &[])), tag(&key(2, &[])));
    let mut tags: Vec<_> = (0..1_000)
        .map(|n| tag(&key(1, &[&n.to_string()])).to_owned())
        .collect();
    tags.sort();
    tags.dedup();
    assert!(tags.len() > 990, "{} tags for 1,000 callers", tags.len());
}

#[test]
fn keys_of_an_installation_begin_alike_and_tell_limits_apart() {
    let [one, other] = ["one", "other"].map(Installation::named);
    let key = |installation: Installation, limit| {
        let LimitId(limit) = installation.own(LimitId(limit));
        key(limit, &["ann"])
    };
    for installation in [one, other] {
        let pattern = installation.pattern();
        let mark = pattern.strip_prefix("tg1{????}").expect("a prefix");
        let mark = mark.strip_suffix('*').expect("an end");
        assert_eq!(mark.len(), MARK_DIGITS);
        for limit in [0, 1, u128::MAX, u128::MAX >> 30] {
            let key = key(installation, limit);
            assert_eq!(&key[9..9 + MARK_DIGITS], mark);
        }
    }
    assert_ne!(one.pattern(), other.pattern());
    assert_ne!(key(one, 1), key(one, 2));
    assert_eq!(Installation::default().pattern(), "tg1{????}*");
}

#[test]
fn a_key_tells_its_window() {
    for window in [
        Duration::from_hours(24),
        Duration::from_mins(1),
        Duration::from_millis(1_500),
        Duration::from_micros(1_001),
        Duration::from_nanos(1_000_001),
    ] {
        for sub_windows in [1, 12] {
            let rounding = Rounding::Down;
            let algorithm = Algorithm::SlidingCounter {
                sub_windows,
                rounding,
            };
            let limit = LimitId(u128::MAX);
            let values = &["a:b"];
            let key = Key::new(CounterKey { limit, values }, &quota(window, algorithm));
            assert_eq!(Key::window_of(key.as_ref()), Some(window));
        }
    }
    assert_eq!(Key::window_of(b"tg1{"), None);
    assert_eq!(
        Key::window_of(b"tg1{aaaa}0123456789012345678901t60x:"),
        None
    );
}
