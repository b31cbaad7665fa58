use tokio::time::timeout;

use super::*;
use crate::test_util::{
    ClusterSetup, Fault, FaultyProxy, PATIENCE, RedisServer, SentinelSetup, ServerOptions,
};

/// The book of a server that has nothing else in it.
fn book(server: &RedisServer) -> RuleBook {
    open(&server.url(), "default")
}

fn open(url: &str, name: &str) -> RuleBook {
    let config = ClientConfig::from_url(url).expect("a URL");
    RuleBook::new(&config, name).expect("no TLS")
}

fn draft(body: &str) -> Draft<'_> {
    Draft {
        body: body.as_bytes(),
        about: "a test",
    }
}

async fn push(book: &RuleBook, body: &str) -> Pushed {
    let pushed = book.push(draft(body), Expected::Any).await;
    pushed.expect("Redis is there")
}

/// The version of this number, pushed after the one before it.
fn new(number: u64) -> Pushed {
    let before = (number > 1).then(|| number - 1);
    Pushed::New { number, before }
}

async fn newest(book: &RuleBook) -> Option<(u64, Digest)> {
    let head = book.head().await.expect("Redis is there")?;
    Some(head.read().expect("a push wrote it"))
}

/// Asks Redis itself, behind the book's back.
async fn ask(book: &RuleBook, words: &[&str]) -> Reply {
    let write = |command: &mut Command<'_>| {
        for word in words {
            command.arg(word);
        }
    };
    let reply = book.client.call(book.route(), write).await;
    reply.expect("Redis is there")
}

/// Waits until Redis answers again.
async fn until_back(book: &RuleBook) {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let back = timeout(PATIENCE, async {
        while book.head().await.is_err() {
            ticks.tick().await;
        }
    });
    back.await.expect("Redis is back");
}

#[tokio::test]
async fn a_version_is_fetched_as_it_was_pushed() {
    let server = RedisServer::start();
    let book = book(&server);
    assert_eq!(newest(&book).await, None);
    assert_eq!(push(&book, "one\r\n\0").await, new(1));
    assert_eq!(push(&book, "two").await, new(2));
    assert_eq!(newest(&book).await, Some((2, Digest::of(b"two"))));
    let version = book.fetch(1).await.expect("it is kept");
    assert_eq!(version.body, b"one\r\n\0");
    assert_eq!(
        (version.entry.bytes, version.entry.about.as_str()),
        (6, "a test")
    );
    let history = book.history().await.expect("Redis is there");
    let numbers: Vec<u64> = history.entries.iter().map(|it| it.number).collect();
    assert_eq!(
        (numbers.as_slice(), history.unreadable),
        ([2, 1].as_slice(), 0)
    );
    assert_eq!(history.entries[1], version.entry);
    assert!(history.entries[0].at >= version.entry.at);
    let gone = book.fetch(3).await;
    assert!(
        matches!(gone, Err(BookError::NoVersion { number: 3 })),
        "{gone:?}"
    );
}

#[tokio::test]
async fn the_same_again_is_no_new_version() {
    let server = RedisServer::start();
    let book = book(&server);
    push(&book, "one").await;
    assert_eq!(push(&book, "one").await, Pushed::Same { number: 1 });
    push(&book, "two").await;
    // Only the newest counts: to go back is to push.
    assert_eq!(push(&book, "one").await, new(3));
    ask(&book, &["HDEL", &book.keys.bodies, "3"]).await;
    assert_eq!(push(&book, "one").await, new(4));
}

#[tokio::test]
async fn a_push_that_expects_something_else_stores_nothing() {
    async fn check(book: &RuleBook, expected: Expected, body: &str, came: Pushed) {
        let pushed = book.push(draft(body), expected).await;
        assert_eq!(pushed.expect("Redis is there"), came);
    }
    let server = RedisServer::start();
    let book = book(&server);
    let overtaken = |newest| Pushed::Overtaken { newest };
    check(&book, Expected::Newest(7), "one", overtaken(None)).await;
    check(&book, Expected::Nothing, "one", new(1)).await;
    check(&book, Expected::Nothing, "two", overtaken(Some(1))).await;
    check(&book, Expected::Newest(1), "two", new(2)).await;
    check(&book, Expected::Newest(1), "three", overtaken(Some(2))).await;
    // Who expects something wants to know that it is not so, whatever the body.
    check(&book, Expected::Newest(1), "two", overtaken(Some(2))).await;
    let history = book.history().await.expect("Redis is there");
    assert_eq!(history.entries.len(), 2);
}

#[tokio::test]
async fn the_last_hundred_are_kept() {
    let server = RedisServer::start();
    let book = book(&server);
    for number in 1..=KEPT + 5 {
        assert_eq!(push(&book, &number.to_string()).await, new(number));
    }
    let history = book.history().await.expect("Redis is there");
    let last = history.entries.last().map(|entry| entry.number);
    assert_eq!((history.entries.len(), last), (100, Some(6)));
    let bodies = ask(&book, &["HLEN", &book.keys.bodies]).await;
    assert_eq!(bodies.integer(), Ok(100));
}

#[tokio::test]
async fn numbers_go_on_after_the_newest_was_lost_or_written_by_hand() {
    let server = RedisServer::start();
    let book = book(&server);
    push(&book, "one").await;
    push(&book, "two").await;
    ask(&book, &["DEL", &book.keys.newest]).await;
    assert_eq!(newest(&book).await, None);
    let after_nothing = |number| Pushed::New {
        number,
        before: None,
    };
    assert_eq!(push(&book, "two").await, after_nothing(3));
    let digest = Digest::of(b"two");
    let damaged = [
        "",
        "nonsense",
        "9999999999999999999 abc",
        "1e300 abc",
        "-4 abc",
        "3 abc",
        &format!("0 {digest}"),
        &format!("+3 {digest}"),
        &format!("9999999999999999999 {digest}"),
    ];
    for (number, nonsense) in (4..).zip(damaged) {
        ask(&book, &["SET", &book.keys.newest, nonsense]).await;
        ask(&book, &["HSET", &book.keys.history, nonsense, "by hand"]).await;
        let head = book.head().await.expect("Redis is there").expect("a head");
        assert!(matches!(head.read(), Err(BookError::BadHead)), "{head:?}");
        // The script takes it for no version either.
        let body = format!("after {nonsense:?}");
        let pushed = book.push(draft(&body), Expected::Nothing).await;
        assert_eq!(pushed.expect("Redis is there"), after_nothing(number));
    }
    let history = book.history().await.expect("Redis is there");
    assert_eq!((history.entries.len(), history.unreadable), (12, 9));
}

#[tokio::test]
async fn a_version_that_was_changed_is_not_believed() {
    let server = RedisServer::start();
    let book = book(&server);
    push(&book, "one").await;
    ask(&book, &["HSET", &book.keys.bodies, "1", "won"]).await;
    let changed = book.fetch(1).await;
    assert!(
        matches!(changed, Err(BookError::Damaged { .. })),
        "{changed:?}"
    );
    ask(&book, &["HSET", &book.keys.bodies, "1", "one"]).await;
    let exactly = book.fetch_exactly(1, Digest::of(b"two")).await;
    assert!(
        matches!(exactly, Err(BookError::Damaged { .. })),
        "{exactly:?}"
    );
    let large = "x".repeat(MAX_BODY + 1);
    ask(&book, &["HSET", &book.keys.bodies, "1", &large]).await;
    let changed = book.fetch(1).await;
    let told = changed.expect_err("it is too large").to_string();
    assert!(told.ends_with("larger than a version may be"), "{told}");
    ask(&book, &["HSET", &book.keys.history, "1", "by hand"]).await;
    let changed = book.fetch(1).await;
    assert!(
        matches!(changed, Err(BookError::Damaged { .. })),
        "{changed:?}"
    );
}

#[tokio::test]
async fn the_largest_version_goes_through_and_a_larger_one_is_refused() {
    let server = RedisServer::start();
    let book = book(&server);
    let largest = "x".repeat(MAX_BODY);
    assert_eq!(push(&book, &largest).await, new(1));
    let version = book.fetch(1).await.expect("it is kept");
    assert_eq!(version.body.len(), MAX_BODY);
    let refused = book.push(draft(&(largest + "x")), Expected::Any).await;
    let told = refused.expect_err("it is too large").to_string();
    assert_eq!(
        told,
        "4194305 bytes are more than the 4 MiB that a version may have"
    );
}

#[tokio::test]
async fn a_push_gives_notice_to_its_own_book_only() {
    let server = RedisServer::start();
    let (book, other) = (book(&server), open(&server.url(), "other"));
    let mut notices = book.listen().await.expect("Redis is there");
    assert_eq!(push(&other, "one").await, new(1));
    assert_eq!(newest(&book).await, None);
    push(&book, "one").await;
    timeout(PATIENCE, notices.next())
        .await
        .expect("a notice")
        .expect("Redis is there");
    server.kill();
    let lost = timeout(PATIENCE, notices.next()).await.expect("an end");
    assert!(lost.is_err());
    assert!(book.listen().await.is_err());
}

/// The rights that docs/rules-in-redis.md names.
const TO_READ: &str = "+get +hget +hgetall +subscribe +ping +role ~tg1:{rules:* &tg1:{rules:*";
const TO_PUSH: &str = "+eval +evalsha +script|load +hset +hdel +hexists +hkeys +set +time +publish";

/// A server that `me` may come in to, with these rights and no other.
fn with_rights(rights: &str) -> RedisServer {
    let user = format!("user me on >secret resetchannels -@all {rights}");
    RedisServer::start_with(ServerOptions {
        settings: vec![user.split(' ').map(str::to_owned).collect()],
        credentials: Some("me:secret".to_owned()),
        ..ServerOptions::default()
    })
}

#[tokio::test]
async fn the_rights_to_read_are_enough_for_a_server() {
    let server = with_rights(TO_READ);
    let book = book(&server);
    assert_eq!(newest(&book).await, None);
    let history = book.history().await.expect("it may");
    assert_eq!(history, History::default());
    assert!(matches!(
        book.fetch(1).await,
        Err(BookError::NoVersion { .. })
    ));
    let mut notices = book.listen().await.expect("it may");
    let refused = book.push(draft("one"), Expected::Any).await;
    let told = refused.expect_err("it may not").to_string();
    assert!(told.contains("NOPERM"), "{told}");
    server.restart();
    assert!(notices.next().await.is_err());
    until_back(&book).await;
    book.listen().await.expect("it may");
}

#[tokio::test]
async fn the_rights_to_push_are_enough_for_a_push() {
    let server = with_rights(&format!("{TO_READ} {TO_PUSH}"));
    let book = book(&server);
    let mut notices = book.listen().await.expect("it may");
    for number in 1..=KEPT + 1 {
        assert_eq!(push(&book, &number.to_string()).await, new(number));
    }
    timeout(PATIENCE, notices.next())
        .await
        .expect("a notice")
        .expect("Redis is there");
}

#[tokio::test]
async fn who_may_not_publish_pushes_all_the_same() {
    let server = with_rights("+@all ~tg1:{rules:*");
    let book = book(&server);
    assert_eq!(push(&book, "one").await, new(1));
    assert!(newest(&book).await.is_some());
    let refused = book.listen().await.expect_err("it may not");
    assert!(refused.to_string().contains("NOPERM"), "{refused}");
}

/// A Redis that no decision would wait for is good enough for rules, also after it was gone.
#[tokio::test]
async fn a_book_far_away_comes_back() {
    const FAR: Fault = Fault::Delay(Duration::from_millis(25));
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    let book = open(&proxy.url(), "default");
    proxy.set(FAR);
    push(&book, "one").await;
    proxy.set(Fault::Refuse);
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    let given_up = timeout(PATIENCE, async {
        while !matches!(book.head().await, Err(BookError::Store(StoreError::Open))) {
            ticks.tick().await;
        }
    });
    given_up.await.expect("it is not asked any more");
    proxy.set(FAR);
    until_back(&book).await;
    assert!(newest(&book).await.is_some());
}

#[tokio::test]
async fn a_cluster_keeps_a_book_in_one_place_and_tells_everybody() {
    let cluster = ClusterSetup::start(3);
    // The slots of these names are on all three masters.
    for name in ["a", "b", "c"] {
        let book = open(&cluster.url(), name);
        let mut notices = book.listen().await.expect("Redis is there");
        assert_eq!(push(&book, "one").await, new(1));
        timeout(PATIENCE, notices.next())
            .await
            .expect("a notice")
            .expect("Redis is there");
        assert_eq!(newest(&book).await, Some((1, Digest::of(b"one"))));
        assert_eq!(book.fetch(1).await.expect("it is kept").body, b"one");
    }
}

#[tokio::test]
async fn a_book_outlives_its_master() {
    let setup = SentinelSetup::start(1, 1);
    let book = open(&setup.url(), "default");
    push(&book, "one").await;
    ask(&book, &["WAIT", "1", "0"]).await;
    let mut notices = book.listen().await.expect("Redis is there");
    let master = setup.master();
    master.kill();
    let lost = timeout(PATIENCE, notices.next()).await.expect("an end");
    assert!(lost.is_err());
    setup.wait_for_failover(master.port());
    until_back(&book).await;
    assert_eq!(newest(&book).await, Some((1, Digest::of(b"one"))));
    assert_eq!(push(&book, "two").await, new(2));
}
