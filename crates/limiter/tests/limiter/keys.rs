//! What operators do to one caller.

use std::time::Duration;

use tidegate_limiter::{
    ActiveBan, BanTerm, Entry, GlobalShadow, Hits, KeyError, LimiterConfig, MAX_BAN_BYTES,
    MAX_BANS, NewBan, Retry, Ruling, Verdict,
};

use crate::fixture::{
    Ask, TestLimiter, advance, ask, check, limiter, limiter_with, rules, text, wait,
    with_descriptors,
};

const RULES: &str = "
domain: test
descriptors:
  - key: user
    rate_limits:
      - {unit: minute, requests_per_unit: 5}
      - {unit: hour, requests_per_unit: 100, algorithm: token_bucket}
  - key: watched
    shadow_mode: true
    rate_limit: {unit: minute, requests_per_unit: 5}
  - key: free
  - key: open
    rate_limit: {unlimited: true}
  - key: ip
    cidr: 10.0.0.0/8
    rate_limit: {unit: minute, requests_per_unit: 5}
";

const ANN: Ask<'_> = Ask::of(&[("user", "ann")]);
const BOB: Ask<'_> = Ask::of(&[("user", "bob")]);
const MINUTE: Duration = Duration::from_mins(1);

fn with_entries<T>(ask: Ask<'_>, then: impl FnOnce(&[Entry<'_>]) -> T) -> T {
    with_descriptors(&[ask], |descriptors| then(descriptors[0].entries))
}

fn lookup(limiter: &TestLimiter, who: Ask<'_>) -> Result<Verdict, KeyError> {
    with_entries(who, |entries| wait(limiter.lookup("test", entries)))
}

fn try_ban(limiter: &TestLimiter, who: Ask<'_>, term: BanTerm) -> Result<(), KeyError> {
    let reason = Some("scraping");
    let new = NewBan { term, reason };
    with_entries(who, |entries| wait(limiter.ban("test", entries, new)))
}

fn ban(limiter: &TestLimiter, who: Ask<'_>, length: Duration) {
    try_ban(limiter, who, BanTerm::For(length)).unwrap();
}

fn unban(limiter: &TestLimiter, who: Ask<'_>) -> Option<ActiveBan> {
    with_entries(who, |entries| wait(limiter.unban("test", entries))).unwrap()
}

fn remaining(limiter: &TestLimiter, who: Ask<'_>) -> Vec<u64> {
    let verdict = lookup(limiter, who).unwrap();
    let limits = verdict.limits();
    limits
        .map(|limit| limit.decision().unwrap().remaining)
        .collect()
}

#[test]
fn a_lookup_tells_of_every_limit_and_changes_nothing() {
    let limiter = limiter(RULES);
    assert_eq!(remaining(&limiter, ANN), [5, 100]);
    ask(&limiter, &[ANN]);
    for _ in 0..3 {
        assert_eq!(remaining(&limiter, ANN), [4, 99]);
    }
    assert_eq!(remaining(&limiter, BOB), [5, 100]);
}

#[test]
fn what_no_rule_knows_is_an_error() {
    let limiter = limiter(RULES);
    let stranger = Ask::of(&[("who", "x")]);
    let domain = "test".to_owned();
    assert_eq!(
        lookup(&limiter, stranger).err(),
        Some(KeyError::NoRule { domain })
    );
    let elsewhere = with_entries(ANN, |entries| wait(limiter.reset("elsewhere", entries)));
    let domain = "elsewhere".to_owned();
    assert_eq!(elsewhere, Err(KeyError::NoSuchDomain { domain }));
    assert_eq!(limiter.unknown_domains(), 0, "nobody asked to pass");
}

#[test]
fn a_reset_forgets_the_counters_of_one_caller() {
    let limiter = limiter(RULES);
    for who in [ANN, BOB] {
        ask(&limiter, &[who]);
    }
    let reset = || with_entries(ANN, |entries| wait(limiter.reset("test", entries)));
    assert_eq!(reset(), Ok(2));
    assert_eq!(reset(), Ok(0), "there is nothing left to forget");
    assert_eq!(remaining(&limiter, ANN), [5, 100]);
    assert_eq!(remaining(&limiter, BOB), [4, 99]);
}

#[test]
fn a_grant_gives_back_no_more_than_was_used() {
    let limiter = limiter(RULES);
    for _ in 0..5 {
        ask(&limiter, &[ANN]);
    }
    let grant = |hits| with_entries(ANN, |entries| wait(limiter.grant("test", entries, hits)));
    assert_eq!(grant(2), Ok(2));
    assert_eq!(remaining(&limiter, ANN), [2, 97]);
    assert_eq!(grant(u64::MAX), Ok(2));
    assert_eq!(remaining(&limiter, ANN), [5, 100]);
}

#[test]
fn a_ban_refuses_until_its_end_and_charges_nothing() {
    let limiter = limiter(RULES);
    ban(&limiter, ANN, MINUTE);
    let verdict = ask(&limiter, &[ANN, BOB]);
    assert_eq!(text(&verdict), "refused: refused undecided, allowed 5/5");
    assert_eq!(verdict.retry(), Some(Retry::After(MINUTE)));
    assert_eq!(verdict.ban(), Some(Retry::After(MINUTE)));
    let rulings: Vec<_> = verdict.limits().take(2).map(|it| it.ruling()).collect();
    assert_eq!(rulings, [Ruling::Banned(Retry::After(MINUTE)); 2]);
    let deciding = verdict.deciding().unwrap();
    assert_eq!(deciding.retry(), Some(Retry::After(MINUTE)));
    assert_eq!(remaining(&limiter, ANN), [5, 100]);
    assert_eq!(remaining(&limiter, BOB), [5, 100]);
    advance(&limiter, Duration::from_nanos(59_999_999_999));
    assert!(!ask(&limiter, &[ANN]).is_allowed(), "a tick too early");
    advance(&limiter, Duration::from_nanos(1));
    check(&limiter, &[ANN], "allowed: allowed 4/5");
}

#[test]
fn a_ban_without_an_end_is_lifted() {
    let limiter = limiter(RULES);
    try_ban(&limiter, ANN, BanTerm::UntilLifted).unwrap();
    advance(&limiter, Duration::from_hours(24 * 365));
    assert_eq!(ask(&limiter, &[ANN]).retry(), Some(Retry::Never));
    check(&limiter, &[BOB], "allowed: allowed 4/5");
    let lifted = unban(&limiter, ANN).unwrap();
    assert_eq!(lifted.left, BanTerm::UntilLifted);
    assert!(unban(&limiter, ANN).is_none());
    check(&limiter, &[ANN], "allowed: allowed 4/5");
}

#[test]
fn the_last_of_several_bans_counts() {
    let limiter = limiter(RULES);
    ban(&limiter, ANN, MINUTE);
    ban(&limiter, BOB, 2 * MINUTE);
    let verdict = ask(&limiter, &[BOB, ANN]);
    assert_eq!(verdict.retry(), Some(Retry::After(2 * MINUTE)));
    let statuses: Vec<_> = verdict.statuses().map(|status| status.ban()).collect();
    assert_eq!(statuses, [2, 1].map(|n| Some(Retry::After(n * MINUTE))));
}

#[test]
fn a_ban_refuses_whatever_the_rule_would_say() {
    let limiter = limiter(RULES);
    for key in ["watched", "free", "open"] {
        let entries = [(key, "ann")];
        let who = Ask::of(&entries);
        assert!(ask(&limiter, &[who]).is_allowed(), "{key}");
        ban(&limiter, who, MINUTE);
        let verdict = ask(&limiter, &[who]);
        assert!(!verdict.is_allowed(), "{key}");
        assert_eq!(verdict.retry(), Some(Retry::After(MINUTE)), "{key}");
    }
    // One who brings a limit along is still who it is.
    ban(&limiter, ANN, MINUTE);
    let verdict = ask(&limiter, &[ANN.limit(1_000, MINUTE)]);
    assert!(!verdict.is_allowed());
}

#[test]
fn a_limiter_that_only_watches_lets_the_banned_pass() {
    let config = LimiterConfig {
        shadow: GlobalShadow::On,
        ..LimiterConfig::default()
    };
    let limiter = limiter_with(RULES, config);
    ban(&limiter, ANN, MINUTE);
    let verdict = ask(&limiter, &[ANN]);
    assert!(verdict.is_allowed() && verdict.is_shadowed());
}

#[test]
fn a_refund_of_the_banned_is_made() {
    let limiter = limiter(RULES);
    ask(&limiter, &[ANN]);
    ban(&limiter, ANN, MINUTE);
    let verdict = ask(&limiter, &[ANN.hits(Hits::Refund(1))]);
    assert!(verdict.is_allowed());
    assert_eq!(remaining(&limiter, ANN), [5, 100]);
}

#[test]
fn an_address_is_banned_however_it_is_spelt() {
    let limiter = limiter(RULES);
    ban(&limiter, Ask::of(&[("ip", "::ffff:10.0.0.1")]), MINUTE);
    assert!(!ask(&limiter, &[Ask::of(&[("ip", "10.0.0.1")])]).is_allowed());
    assert!(ask(&limiter, &[Ask::of(&[("ip", "10.0.0.2")])]).is_allowed());
}

#[test]
fn a_ban_outlives_a_reload_that_takes_its_rule_away() {
    let limiter = limiter(RULES);
    ban(&limiter, ANN, MINUTE);
    limiter.replace_rules(rules(
        &RULES.replace("requests_per_unit: 5", "requests_per_unit: 7"),
    ));
    assert!(!ask(&limiter, &[ANN]).is_allowed());
    limiter.replace_rules(rules("{domain: test, descriptors: [{key: other}]}"));
    assert!(ask(&limiter, &[ANN]).is_allowed(), "nobody knows the rule");
    limiter.replace_rules(rules(RULES));
    assert!(!ask(&limiter, &[ANN]).is_allowed());
}

#[test]
fn bans_are_listed_until_they_end() {
    let limiter = limiter(RULES);
    ban(&limiter, BOB, MINUTE);
    ban(&limiter, ANN, 2 * MINUTE);
    ban(&limiter, BOB, 3 * MINUTE);
    let listed = || {
        let line = |active: &ActiveBan| {
            let ban = &active.ban;
            let values: Vec<_> = ban.entries().map(|entry| entry.value.to_owned()).collect();
            (ban.rule().to_owned(), values.concat(), active.left)
        };
        let bans = wait(limiter.bans()).unwrap();
        assert!(bans.iter().all(|it| it.ban.reason() == Some("scraping")));
        bans.iter().map(line).collect::<Vec<_>>()
    };
    let expected = |who: &str, left| ("user".to_owned(), who.to_owned(), BanTerm::For(left));
    assert_eq!(
        listed(),
        [expected("ann", 2 * MINUTE), expected("bob", 3 * MINUTE)]
    );
    advance(&limiter, 2 * MINUTE);
    assert_eq!(listed(), [expected("bob", MINUTE)]);
}

#[test]
fn bans_are_bounded_and_make_way_when_they_are_over() {
    let limiter = limiter(RULES);
    let long = "x".repeat(MAX_BAN_BYTES);
    let most = MAX_BAN_BYTES;
    let banned = try_ban(&limiter, Ask::of(&[("user", &long)]), BanTerm::UntilLifted);
    assert_eq!(banned, Err(KeyError::BanTooLong { most }));
    for n in 0..MAX_BANS {
        ban(&limiter, Ask::of(&[("user", &n.to_string())]), MINUTE);
    }
    let most = MAX_BANS;
    let full = Err(KeyError::TooManyBans { most });
    assert_eq!(try_ban(&limiter, ANN, BanTerm::UntilLifted), full);
    // One that is there already may change.
    ban(&limiter, Ask::of(&[("user", "0")]), MINUTE);
    advance(&limiter, MINUTE);
    try_ban(&limiter, ANN, BanTerm::UntilLifted).unwrap();
    assert_eq!(wait(limiter.bans()).unwrap().len(), 1);
}
