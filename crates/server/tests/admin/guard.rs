//! Who may change things.

use tidegate_server::{AdminConfig, AdminReads};

use crate::desk::{Ask, Desk, TOKEN, guarded, local, user};

fn reset() -> Ask {
    Ask::new("POST", "/api/v1/keys/reset").body(&user("42").to_string())
}

#[track_caller]
fn assert_says(detail: &str, part: &str) {
    assert!(detail.contains(part), "{detail}");
}

#[tokio::test]
async fn a_token_lets_in_whoever_has_it() {
    let desk = Desk::start_with(guarded());
    assert_eq!(desk.send(&reset().token(TOKEN)).await.status, 200);
    let lower_case = reset().header("authorization", &format!("bearer {TOKEN}"));
    assert_eq!(desk.send(&lower_case).await.status, 200);
    for wrong in ["open", "open-sesame1", "Open-sesame", ""] {
        let reply = desk.send(&reset().token(wrong)).await;
        assert_eq!(reply.status, 401, "{wrong}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    let basic = reset().header("Authorization", &format!("Basic {TOKEN}"));
    assert_says(
        &desk.send(&basic).await.detail(401),
        "Authorization: Bearer",
    );
}

#[tokio::test]
async fn reading_may_need_the_token_too() {
    let config = AdminConfig {
        reads: AdminReads::WithToken,
        ..guarded()
    };
    let desk = Desk::start_with(config);
    for path in ["/", "/metrics", "/rlconfig", "/api/v1/rules"] {
        assert_eq!(desk.get(path).await.status, 401, "{path}");
        let ask = Ask::new("GET", path).token(TOKEN);
        assert_eq!(desk.send(&ask).await.status, 200, "{path}");
    }
    for probe in ["/healthcheck", "/readyz"] {
        assert_eq!(desk.get(probe).await.status, 200, "{probe}");
    }
}

#[tokio::test]
async fn nobody_reads_by_a_token_that_is_not_there() {
    let config = AdminConfig {
        reads: AdminReads::WithToken,
        ..local()
    };
    let desk = Desk::start_with(config);
    let detail = desk.get("/api/v1/rules").await.detail(403);
    assert_says(&detail, "set `admin.token`");
    assert_eq!(desk.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn without_a_token_a_change_says_what_to_set() {
    let desk = Desk::start_with(AdminConfig::default());
    assert_says(&desk.send(&reset()).await.detail(403), "admin.token");
}

#[tokio::test]
async fn another_page_cannot_change_anything() {
    for config in [local(), guarded()] {
        let desk = Desk::start_with(config);
        let own = format!("http://{}", desk.admin);
        let ask = || reset().token(TOKEN);
        for site in ["cross-site", "same-site", "odd"] {
            let reply = desk.send(&ask().header("Sec-Fetch-Site", site)).await;
            assert_says(&reply.detail(403), "another web page");
        }
        for origin in ["http://evil.example", "null", "http://127.0.0.1:1", ""] {
            let reply = desk.send(&ask().header("Origin", origin)).await;
            assert_says(&reply.detail(403), "another web page");
        }
        let from_here = ask()
            .header("Origin", &own)
            .header("Sec-Fetch-Site", "same-origin");
        assert_eq!(desk.send(&from_here).await.status, 200);
    }
}

#[tokio::test]
async fn a_name_that_was_made_to_lead_here_gets_nothing_of_the_api() {
    let desk = Desk::start();
    let port = desk.admin.port();
    for host in [
        "evil.example",
        "evil.example:6070",
        "localhost.evil.example",
        "10.0.0.1",
        "",
    ] {
        let reply = desk.send(&reset().header("Host", host)).await;
        assert_says(&reply.detail(403), "Host");
        let read = Ask::new("GET", "/api/v1/rules").header("Host", host);
        assert_says(&desk.send(&read).await.detail(403), "Host");
        // Scrapers may know this machine by any name.
        let scrape = Ask::new("GET", "/metrics").header("Host", host);
        assert_eq!(desk.send(&scrape).await.status, 200);
    }
    for host in [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1",
        "[::1]:6070",
        "a.localhost",
    ] {
        let reply = desk.send(&reset().header("Host", host)).await;
        assert_eq!(reply.status, 200, "{host}");
    }
    let usual = format!("127.0.0.1:{port}");
    assert_eq!(desk.send(&reset().header("Host", &usual)).await.status, 200);
}

#[tokio::test]
async fn the_token_makes_any_name_good() {
    let config = AdminConfig {
        token: guarded().token,
        ..local()
    };
    let desk = Desk::start_with(config);
    let host = "tidegate.internal";
    let ask = reset().header("Host", host).token(TOKEN);
    assert_eq!(desk.send(&ask).await.status, 200);
    let read = Ask::new("GET", "/api/v1/bans").header("Host", host);
    assert_eq!(desk.send(&read.clone().token(TOKEN)).await.status, 200);
    // A wrong one is a guess, and slowed as such.
    assert_eq!(desk.send(&read.clone().token("guess")).await.status, 401);
    // That there is a token does not help who does not bring it.
    assert_says(&desk.send(&read).await.detail(403), "Host");
}
