//! Decisions that wait at one moment are one command, and each is as if it were alone.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec, Refill, Rounding};
use tidegate_store::{Charge, Charging, Decisions, Store, StoreError};
use tidegate_store_redis::RedisStore;
use tidegate_store_redis::test_util::wait_until;

use crate::keep::{charge, keys};
use crate::subject::Site;

/// One for each script.
const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    },
    Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Interval,
    },
    Algorithm::FixedWindow,
    Algorithm::SlidingLog { log_refused: false },
    Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    },
    Algorithm::SlidingCounter {
        sub_windows: 4,
        rounding: Rounding::Up,
    },
];

/// Waits for all of them, begun at one moment and in this order.
pub(crate) async fn at_once<F: Future>(answers: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<Pin<Box<F>>> = answers.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = waiting.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (answer, done) in waiting.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(output) = answer.as_mut().poll(cx)
            {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

fn five_an_hour(algorithm: Algorithm) -> Quota {
    let spec = QuotaSpec {
        limit: 5,
        window: Duration::from_hours(1),
        algorithm,
        allowance: Allowance::Hard,
    };
    Quota::new(&spec).expect("valid")
}

async fn decide(store: &RedisStore, charge: Charge<'_>) -> Result<Decisions, StoreError> {
    let mut decisions = Decisions::new();
    let charges = [charge];
    let answer = store.charge(&charges, Charging::AllOrNone, &mut decisions);
    answer.await.map(|_| decisions)
}

/// What is left to each caller, in order, after each was charged 1 at one moment.
fn left_to(site: &Site, store: &RedisStore, quota: &Quota, callers: &[&str]) -> Vec<u64> {
    let all: Vec<_> = callers.iter().map(|caller| [*caller]).collect();
    let asked = all
        .iter()
        .map(|values| decide(store, charge(quota, 1, values)));
    let answers = site.desk.wait(at_once(asked));
    let left = |answer: Result<Decisions, StoreError>| answer.expect("a decision")[0].remaining;
    answers.into_iter().map(left).collect()
}

/// How often Redis was asked to run a script by its name.
fn commands(site: &Site) -> u64 {
    let reply = site.desk.ask(&["INFO", "commandstats"]);
    let text = String::from_utf8_lossy(reply.text().expect("a text").expect("some")).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let calls = line.and_then(|line| line.split(',').next());
    calls.map_or(0, |calls| calls.parse().expect("a number"))
}

#[test]
fn decisions_of_one_moment_are_one_command_and_charged_in_order() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    for algorithm in ALGORITHMS {
        let five = five_an_hour(algorithm);
        let before = commands(&site);
        let left = left_to(&site, &store, &five, &["ann", "bob", "ann", "ann", "bob"]);
        assert_eq!(left, [4, 4, 3, 2, 3], "{algorithm:?}");
        assert_eq!(commands(&site), before + 1, "{algorithm:?}");
        let left = left_to(&site, &store, &five, &["ann", "ann", "ann"]);
        assert_eq!(left, [1, 0, 0], "{algorithm:?}");
        assert_eq!(left_to(&site, &store, &five, &["bob"]), [2], "alone");
    }
}

#[test]
fn a_command_is_of_no_more_decisions_than_keep_redis_for_a_moment() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    let five = five_an_hour(ALGORITHMS[0]);
    let callers: Vec<_> = (0..100).map(|caller| caller.to_string()).collect();
    let callers: Vec<_> = callers.iter().map(String::as_str).collect();
    assert_eq!(left_to(&site, &store, &five, &callers), [4; 100]);
    assert_eq!(commands(&site), 4);
}

/// Whatever is wrong with one counter is told to its caller, and the others are decided on.
#[test]
fn a_decision_that_fails_fails_alone() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    for algorithm in ALGORITHMS {
        let five = five_an_hour(algorithm);
        left_to(&site, &store, &five, &["spoilt"]);
        let spoilt = keys(&site).pop().expect("its key");
        for junk in [&["SET", &spoilt, "junk"][..], &["SADD", &spoilt, "junk"]] {
            site.desk.ask(&["FLUSHALL"]);
            site.desk.ask(junk);
            let before = commands(&site);
            let callers = [["ann"], ["spoilt"], ["ann"], ["bob"]];
            let asked = callers
                .iter()
                .map(|values| decide(&store, charge(&five, 1, values)));
            let answers = site.desk.wait(at_once(asked));
            assert_eq!(commands(&site), before + 1);
            for (answer, left) in answers.iter().zip([Some(4), None, Some(3), Some(4)]) {
                match (answer, left) {
                    (Ok(decisions), Some(left)) => assert_eq!(decisions[0].remaining, left),
                    (Err(error), None) => assert!(error.to_string().contains(&spoilt), "{error}"),
                    _ => panic!("{algorithm:?}: {answer:?}, expected {left:?}"),
                }
            }
        }
        site.desk.ask(&["FLUSHALL"]);
    }
}

/// Redis says that it did nothing, so each is asked again, and decided once; then they are joined again.
#[test]
fn a_script_that_redis_forgot_is_sent_again_for_all() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    let five = five_an_hour(ALGORITHMS[0]);
    assert_eq!(left_to(&site, &store, &five, &["ann", "bob"]), [4, 4]);
    site.desk.ask(&["SCRIPT", "FLUSH"]);
    assert_eq!(left_to(&site, &store, &five, &["ann", "bob"]), [3, 3]);
    let before = commands(&site);
    assert_eq!(left_to(&site, &store, &five, &["ann", "bob"]), [2, 2]);
    assert_eq!(commands(&site), before + 1);
}

/// Who goes away before the answer takes it from nobody else.
#[test]
fn a_caller_who_hangs_up_leaves_the_others_their_answers() {
    let site = Site::start();
    let store = RedisStore::new(site.desk.client.clone());
    let five = five_an_hour(ALGORITHMS[0]);
    left_to(&site, &store, &five, &["somebody"]);
    let values = [["ann"], ["gone"], ["bob"]];
    let mut asked: Vec<_> = values
        .iter()
        .map(|values| Box::pin(decide(&store, charge(&five, 1, values))))
        .collect();
    site.desk.wait(poll_fn(|cx| {
        for answer in &mut asked {
            assert!(
                answer.as_mut().poll(cx).is_pending(),
                "nothing was sent yet"
            );
        }
        Poll::Ready(())
    }));
    drop(asked.remove(1));
    for answer in site.desk.wait(at_once(asked)) {
        assert_eq!(answer.expect("a decision")[0].remaining, 4);
    }
    wait_until("no reply is left", || {
        store.client().report()[0].waiting == 0
    });
    assert_eq!(left_to(&site, &store, &five, &["gone"]), [3], "it was sent");
}
