//! What is kept in Redis, and for how long: on Redis' own clock.

use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Percent, Quota, QuotaSpec, Refill, RefundTo, Rounding,
};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Cursor, Decisions, Draw, Lender, LimitId, Mode,
    OnFull, Store, StoreError,
};
use tidegate_store_redis::RedisStore;
use tidegate_store_redis::client::{Route, Value};
use tidegate_store_redis::test_util::{PATIENCE, wait_until};

use crate::subject::{Desk, Site};

const ALGORITHMS: [Algorithm; 7] = [
    Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    },
    Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Interval,
    },
    Algorithm::LeakyBucket { queue: None },
    Algorithm::FixedWindow,
    Algorithm::SlidingLog { log_refused: true },
    Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    },
    Algorithm::SlidingCounter {
        sub_windows: 4,
        rounding: Rounding::Up,
    },
];

fn quota(limit: u64, window: Duration, algorithm: Algorithm) -> Quota {
    let allowance = Allowance::Soft {
        over: Percent(50),
        only_for: Some(window / 2),
    };
    quota_with(limit, window, algorithm, allowance)
}

fn quota_with(limit: u64, window: Duration, algorithm: Algorithm, allowance: Allowance) -> Quota {
    let spec = QuotaSpec {
        limit,
        window,
        algorithm,
        allowance,
    };
    Quota::new(&spec).expect("valid")
}

/// Two limits of each algorithm: one that may be exceeded, and one that may not, which has a flat script.
fn quotas(limit: u64, window: Duration) -> impl Iterator<Item = Quota> {
    ALGORITHMS.into_iter().flat_map(move |algorithm| {
        let hard = quota_with(limit, window, algorithm, Allowance::Hard);
        [quota(limit, window, algorithm), hard]
    })
}

pub(crate) fn charge<'a>(quota: &'a Quota, limit: u128, values: &'a [&'a str]) -> Charge<'a> {
    Charge {
        key: CounterKey {
            limit: LimitId(limit),
            values,
        },
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency: Consistency::Strict,
    }
}

fn try_charge(
    site: &Site,
    store: &RedisStore,
    charges: &[Charge<'_>],
) -> Result<Decisions, StoreError> {
    let mut decisions = Decisions::new();
    let answer = store.charge(charges, Charging::AllOrNone, &mut decisions);
    site.desk.wait(answer).map(|_| decisions)
}

/// All keys, by pages, as an operator would look for them.
pub(crate) fn keys(site: &Site) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let reply = site.desk.ask(&["SCAN", &cursor]);
        let mut page = reply.array().expect("a page");
        let next = page.next().expect("a cursor");
        let keys = page.next().and_then(Value::array).expect("a list");
        found.extend(keys.map(|key| key.str().expect("a key").to_owned()));
        next.str().expect("a cursor").clone_into(&mut cursor);
        if cursor == "0" {
            // A page may tell of a key that another told of.
            found.sort_unstable();
            found.dedup();
            return found;
        }
    }
}

/// Whatever is done to counters of whatever algorithm: every key has its end, and then nothing is left.
#[test]
fn nothing_outlives_its_window() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    let quotas: Vec<_> = quotas(3, Duration::from_millis(40)).collect();
    for caller in ["ann", "bob"] {
        let values = [caller];
        for _ in 0..6 {
            for (limit, quota) in (0..).zip(&quotas) {
                let charge = charge(quota, limit, &values);
                try_charge(&site, &store, &[charge]).expect("a decision");
                let refund =
                    store.refund(charge.key, quota, 1, RefundTo::Current, Consistency::Strict);
                site.desk.wait(refund).expect("a refund");
                try_charge(&site, &store, &[charge, charge]).expect("two decisions");
            }
            for key in keys(&site) {
                let ttl = site.desk.ask(&["PTTL", &key]).integer().expect("a time");
                assert!((-2..=200).contains(&ttl) && ttl != -1, "{key}: {ttl}");
            }
        }
    }
    wait_until("nothing is left", || keys(&site).is_empty());
}

/// During an upgrade two versions of what is stored lie in one Redis. Neither sees the other's.
#[test]
fn another_version_is_left_alone() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    let five = quota(5, Duration::from_mins(1), Algorithm::FixedWindow);
    let one = charge(&five, 1, &["ann"]);
    try_charge(&site, &store, &[one]).expect("a decision");
    let ours = keys(&site).pop().expect("our key");
    let theirs = ours.replacen("tg1", "tg2", 1);
    site.desk.ask(&["SET", &theirs, "who knows"]);
    let decisions = try_charge(&site, &store, &[one]).expect("a decision");
    assert_eq!(decisions[0].remaining, 3);
    let page = site.desk.wait(store.list(Cursor::default(), 100));
    assert_eq!(page.expect("a page").counters.len(), 1);
    let reset = store.reset(one.key, &five, Consistency::Strict);
    assert!(site.desk.wait(reset).expect("an answer"));
    assert_eq!(keys(&site), std::slice::from_ref(&theirs));
    let left = site.desk.ask(&["GET", &theirs]);
    assert_eq!(left.value(), Value::Text(b"who knows"));
}

/// A key under our prefix that nobody of ours wrote, of whatever type, is not listed and ends no list.
#[test]
fn what_is_no_counter_is_not_listed() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    let five = quota(5, Duration::from_mins(1), Algorithm::FixedWindow);
    try_charge(&site, &store, &[charge(&five, 1, &["ann"])]).expect("a decision");
    let ours = keys(&site).pop().expect("our key");
    for shape in ["f60s", "g60s", "w4/60s", "x"] {
        let theirs = ours.replacen("f60s:3:ann", &format!("{shape}:3:bob"), 1);
        site.desk.ask(&["RPUSH", &theirs, "who knows"]);
        site.desk.ask(&["PEXPIRE", &theirs, "100000"]);
    }
    let page = site.desk.wait(store.list(Cursor::default(), 100));
    assert_eq!(page.expect("a page").counters.len(), 1);
}

/// The rights that `docs/failure.md` tells operators to give are enough, and reach no key but ours.
#[test]
fn a_user_needs_no_more_rights_than_are_told() {
    let site = Site::start();
    let page = include_str!("../../../../docs/failure.md");
    let rights = page
        .split("The user needs `")
        .nth(1)
        .expect("they are told");
    let rights = rights.split('`').next().expect("they end").split(' ');
    let user: Vec<_> = ["ACL", "SETUSER", "limiter", "on", ">pw"]
        .into_iter()
        .chain(rights)
        .collect();
    site.desk.ask(&user);
    let limited = Desk::at(&format!("redis://limiter:pw@{}", site.server.address()));
    let store = RedisStore::new(limited.client.clone());
    limited.wait(limited.client.knock(PATIENCE)).expect("in");
    for (limit, algorithm) in (0..).zip(ALGORITHMS) {
        let five = quota(5, Duration::from_mins(1), algorithm);
        let one = charge(&five, limit, &["ann"]);
        for charges in [&[one][..], &[one, one]] {
            let mut decisions = Decisions::new();
            let answer = store.charge(charges, Charging::AllOrNone, &mut decisions);
            limited.wait(answer).expect("a decision");
        }
        let draw = Draw {
            least: 1,
            most: 2,
            one_in: 1,
            reserve: 0,
            life: Duration::from_secs(1),
        };
        let loan = limited.wait(store.draw(one.key, &five, draw));
        let loan = loan.expect("a loan");
        let given = store.give_back(one.key, &five, &loan, 1);
        limited.wait(given).expect("taken back");
        let refund = store.refund(one.key, &five, 1, RefundTo::Current, Consistency::Strict);
        limited.wait(refund).expect("a refund");
        let reset = store.reset(one.key, &five, Consistency::Strict);
        limited.wait(reset).expect("an answer");
    }
    let page = limited.wait(store.list(Cursor::default(), 100));
    page.expect("a page");
    assert_eq!(limited.client.report()[0].errors.total(), 0);
    let foreign = limited.client.call(Route::Any, |command| {
        command.arg("GET").arg("theirs");
    });
    let error = limited.wait(foreign).expect_err("not ours");
    assert!(error.to_string().contains("NOPERM"), "{error}");
}

/// Installations that share a Redis have counters of their own, and list nobody else's.
#[test]
fn another_installation_is_left_alone() {
    let site = Site::start();
    let five = quota(5, Duration::from_mins(1), Algorithm::FixedWindow);
    let stores = ["one", "other"].map(|name| {
        let store = RedisStore::new(site.desk.client.clone());
        store.named(name)
    });
    for (store, callers) in stores.iter().zip([3, 7]) {
        for caller in 0..callers {
            let values = [&*caller.to_string()];
            let decisions = try_charge(&site, store, &[charge(&five, 1, &values)]);
            assert_eq!(decisions.expect("a decision")[0].remaining, 4);
        }
    }
    let listed = stores.map(|store| {
        let page = site.desk.wait(store.list(Cursor::default(), 100));
        page.expect("a page").counters.len()
    });
    assert_eq!(listed, [3, 7]);
}

/// What nobody of ours wrote is no counter, and is neither overwritten nor taken for an empty one.
#[test]
fn a_value_that_makes_no_sense_is_an_error_that_names_its_key() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    for (limit, five) in (0..).zip(quotas(5, Duration::from_mins(1))) {
        let one = charge(&five, limit, &["ann"]);
        try_charge(&site, &store, &[one]).expect("a decision");
        let key = keys(&site).pop().expect("its key");
        for junk in [&["SET", &key, "junk"][..], &["SADD", &key, "junk"]] {
            site.desk.ask(&["DEL", &key]);
            site.desk.ask(junk);
            for charges in [&[one][..], &[one, one]] {
                let error = try_charge(&site, &store, charges).expect_err("no counter");
                assert!(error.to_string().contains(&key), "{five:?}: {error}");
            }
            let kind = site.desk.ask(&["EXISTS", &key]).integer();
            assert_eq!(kind.expect("a number"), 1, "{five:?}: left as it is");
        }
        site.desk.ask(&["DEL", &key]);
    }
}

/// Nor is a value so long that it would keep a script, and Redis with it, busy for hours.
#[test]
fn a_value_of_any_length_is_an_error_at_once() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    let digits = "1".repeat(50_000);
    let junk = [
        format!("{digits}x"),
        format!("{digits}:1"),
        format!("1:{digits}x"),
        format!("1:1:{digits}x"),
    ];
    for (limit, five) in (0..).zip(quotas(5, Duration::from_mins(1))) {
        let one = charge(&five, limit, &["ann"]);
        try_charge(&site, &store, &[one]).expect("a decision");
        let key = keys(&site).pop().expect("its key");
        for junk in &junk {
            site.desk.ask(&["SET", &key, junk]);
            for charges in [&[one][..], &[one, one]] {
                let error = try_charge(&site, &store, charges).expect_err("no counter");
                assert!(error.to_string().contains(&key), "{five:?}: {error}");
            }
        }
        site.desk.ask(&["DEL", &key]);
    }
}

/// Numbers that do not add up are no reason to go round in a script for ever, and Redis with it.
#[test]
fn counts_that_do_not_add_up_are_gone_through_once() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    let algorithm = Algorithm::SlidingCounter {
        sub_windows: 4,
        rounding: Rounding::Up,
    };
    let five = quota(5, Duration::from_mins(1), algorithm);
    let one = charge(&five, 1, &["ann"]);
    try_charge(&site, &store, &[one]).expect("a decision");
    let key = keys(&site).pop().expect("its key");
    site.desk.ask(&["HSET", &key, "t", "100"]);
    let refund = store.refund(one.key, &five, 50, RefundTo::Current, Consistency::Strict);
    site.desk.wait(refund).expect("a refund");
    for newest in ["1e300", "inf", "nan", "-1", "0.5"] {
        site.desk.ask(&["HSET", &key, "n", newest]);
        let error = try_charge(&site, &store, &[one]).expect_err("no counter");
        assert!(error.to_string().contains(&key), "{newest}: {error}");
    }
}

/// A server that has forgotten its scripts, or all it knew, is told again.
#[test]
fn scripts_that_redis_forgot_are_sent_again() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    let five = quota(5, Duration::from_mins(1), Algorithm::FixedWindow);
    let one = charge(&five, 1, &["ann"]);
    for left in [4, 3] {
        let decisions = try_charge(&site, &store, &[one]).expect("a decision");
        assert_eq!(decisions[0].remaining, left);
        site.desk.ask(&["SCRIPT", "FLUSH"]);
    }
    site.server.restart();
    let mut decisions = None;
    wait_until("it decides again", || {
        decisions = try_charge(&site, &store, &[one]).ok();
        decisions.is_some()
    });
    assert_eq!(
        decisions.expect("just so")[0].remaining,
        4,
        "the counts are lost"
    );
}
