//! Calls and scripts on one server that works.

use futures_util::future::join_all;
use tidegate_store_redis::client::{Joinable, Route, Script};
use tidegate_store_redis::test_util::RedisServer;

use super::{ask, client, insist, n_calls, text};

#[tokio::test]
async fn a_call_is_answered() {
    let server = RedisServer::start();
    let client = client(&server.url());
    assert_eq!(text(&client, &["PING"]).await, "PONG");
    assert_eq!(text(&client, &["SET", "a", "1"]).await, "OK");
    assert_eq!(text(&client, &["GET", "a"]).await, "1");
    assert_eq!(text(&client, &["GET", "b"]).await, "(nil)");
    let reply = ask(&client, &["INCR", "a"]).await.unwrap();
    assert_eq!(reply.integer(), Ok(2));
    let error = ask(&client, &["INCR"]).await.unwrap_err();
    assert!(
        error.to_string().contains("wrong number of arguments"),
        "{error}"
    );
    assert_eq!(client.report()[0].errors.reply, 1);
}

#[tokio::test]
async fn a_script_is_loaded_when_first_called_and_again_when_forgotten() {
    let server = RedisServer::start();
    let client = client(&server.url());
    let script = Script::new("return {KEYS[1], ARGV[1] + 1}");
    let run = || async {
        let reply = client.eval(Route::Key(b"a"), &script, |command| {
            command.number(1).arg("a").number(41);
        });
        let reply = reply.await.expect("it is answered");
        let mut values = reply.array().expect("it is a list");
        assert_eq!(values.next().and_then(|value| value.str()), Some("a"));
        assert_eq!(values.next().and_then(|value| value.integer()), Some(42));
        assert_eq!(values.next(), None);
    };
    run().await;
    run().await;
    let stats = text(&client, &["INFO", "commandstats"]).await;
    assert!(stats.contains("cmdstat_script|load:calls=1,"), "{stats}");
    assert!(stats.contains("cmdstat_evalsha:calls=2,"), "{stats}");
    ask(&client, &["SCRIPT", "FLUSH"]).await.unwrap();
    run().await;
    server.restart();
    insist(&client, &["PING"]).await;
    run().await;
}

/// What a script is told, told back; of several, in one command.
fn echo() -> Joinable {
    let joined = "local all = {} for i = 1, #KEYS do all[i] = ARGV[i] end return all";
    Joinable::new(Script::new("return ARGV[1]"), Script::new(joined))
}

/// A server that forgot a script is sent it once, and not with every call from then on.
#[tokio::test]
async fn scripts_of_joined_calls_are_loaded_again_when_forgotten() {
    let server = RedisServer::start();
    let client = client(&server.url());
    let script = echo();
    let run = async || {
        let asked = (0..10_u8).map(|number| {
            let (client, script) = (&client, &script);
            async move {
                let reply = client.eval_joined(script, b"a", &[number], None).await;
                assert_eq!(reply.unwrap().text(), Ok(Some(&[number][..])));
            }
        });
        join_all(asked).await;
    };
    run().await;
    assert_eq!(
        (n_calls(&server, "evalsha"), n_calls(&server, "eval")),
        (1, 0)
    );
    server.must(&["SCRIPT", "FLUSH"]);
    run().await;
    let in_full = n_calls(&server, "eval");
    assert!(in_full > 0);
    run().await;
    assert_eq!(n_calls(&server, "eval"), in_full);
}

#[tokio::test]
async fn a_fault_of_a_script_is_no_failure_of_the_server() {
    let server = RedisServer::start();
    let client = client(&server.url());
    let script = Script::new("return redis.call('GET')");
    for _ in 0..50 {
        let error = client.eval(Route::Any, &script, |command| {
            command.number(0);
        });
        let error = error.await.unwrap_err().to_string();
        assert!(error.contains("Wrong number of args"), "{error}");
    }
    assert_eq!(client.report()[0].opened, 0);
}

#[tokio::test]
async fn a_server_tells_of_itself() {
    let server = RedisServer::start();
    let client = client(&server.url());
    assert_eq!(client.report()[0].info, None);
    client.refresh_info().await;
    let info = client.report()[0].info.expect("it told");
    assert!(info.used_memory > 0 && info.clients >= 1, "{info:?}");
}
