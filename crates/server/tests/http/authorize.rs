//! `/v1/authorize`: what a proxy tells of its client's request, and what it is answered.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tidegate_identify::{
    AcceptedNames, ApiKeyHasher, ApiKeyTable, ApiKeys, BadToken, ClientAddress, Identities,
    Ingredient, MissingToken, Proxies, Proxy, Recipe, Recipes, TokenKeys, TokenSettings,
    TokenVerifier, Trust,
};
use tidegate_server::{AuthorizeConfig, AuthorizeDomain, HeaderForm, RequestHeaders, ServerConfig};

use crate::client::{Reply, Server, config};

const RULES: &str = "
domain: api
descriptors:
  - key: remote_address
    rate_limit: {unit: minute, requests_per_unit: 2, name: per_client}
  - key: path
    value: /login
    descriptors:
      - key: method
        value: POST
        rate_limit: {unit: minute, requests_per_unit: 1, name: logins}
  - key: key
    rate_limit: {unit: minute, requests_per_unit: 1, name: per_key}
  - key: many
    rate_limit: {unit: minute, requests_per_unit: 100}
  - key: banned
    rate_limit: {unit: minute, requests_per_unit: 0}
  - key: soft
    rate_limit: {unit: minute, requests_per_unit: 1, soft: 100%}
";

/// Asks as a proxy on this machine, with these lines in the head.
async fn ask(server: &Server, target: &str, headers: &[&str]) -> Reply {
    let first = format!("GET {target} HTTP/1.1");
    let lines = [
        &[&first, "Host: tidegate", "Connection: close"],
        headers,
        &["\r\n"],
    ];
    server.exchange(&lines.concat().join("\r\n")).await
}

/// The statuses of questions about requests with these headers, one after the other.
async fn statuses(server: &Server, asked: &[&[&str]]) -> Vec<u16> {
    let mut statuses = Vec::new();
    for headers in asked {
        statuses.push(
            ask(server, "/v1/authorize?domain=api", headers)
                .await
                .status,
        );
    }
    statuses
}

async fn start(authorize: AuthorizeConfig) -> Server {
    let config = ServerConfig {
        authorize,
        ..config()
    };
    Server::start_as(RULES, config).await
}

fn descriptors(list: &[&[(&str, &str)]]) -> Recipes {
    let recipe = |entries: &&[(&str, &str)]| {
        let ingredient = |(key, from): &(&str, &str)| Ingredient {
            key: (*key).to_owned(),
            from: from.parse().unwrap(),
        };
        Recipe(entries.iter().map(ingredient).collect())
    };
    Recipes::new(list.iter().map(recipe).collect()).unwrap()
}

/// Refuses everybody in the domain `api`.
fn banned() -> AuthorizeConfig {
    AuthorizeConfig {
        descriptors: descriptors(&[&[("banned", "constant:yes")]]),
        ..AuthorizeConfig::default()
    }
}

fn trusting(proxies: &[&str]) -> ClientAddress {
    let proxies = proxies.iter().map(|text| text.parse::<Proxy>().unwrap());
    ClientAddress {
        trust: Trust::Proxies(proxies.collect::<Proxies>()),
        ..ClientAddress::default()
    }
}

#[tokio::test]
async fn a_request_that_passes_over_a_soft_limit_is_marked() {
    let server = start(AuthorizeConfig {
        descriptors: descriptors(&[&[("soft", "constant:yes")]]),
        ..AuthorizeConfig::default()
    });
    let server = server.await;
    for (status, mark) in [(200, None), (200, Some("true")), (429, None)] {
        let reply = ask(&server, "/v1/authorize?domain=api", &[]).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("x-ratelimit-over"), mark);
    }
}

#[tokio::test]
async fn a_client_may_pass_until_its_limit() {
    let server = Server::start(RULES).await;
    let client = ["X-Forwarded-For: 203.0.113.7"];
    let first = ask(&server, "/v1/authorize?domain=api", &client).await;
    assert_eq!((first.status, first.body.as_str()), (200, ""));
    assert_eq!(
        first.limit_headers(),
        ["x-ratelimit-limit: 2", "x-ratelimit-remaining: 1"]
    );
    assert_eq!(first.header("cache-control"), Some("no-store"));
    ask(&server, "/v1/authorize?domain=api", &client).await;

    let refused = ask(&server, "/v1/authorize?domain=api", &client).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("retry-after"), Some("60"));
    assert_eq!(refused.header("cache-control"), Some("no-store"));
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
    assert!(refused.body.contains(r#""status":429"#), "{}", refused.body);
    assert!(refused.body.contains("per_client"), "{}", refused.body);

    let other = ["X-Forwarded-For: 203.0.113.8"];
    assert_eq!(statuses(&server, &[&other]).await, [200]);
}

#[tokio::test]
async fn a_refusal_has_the_status_that_the_proxy_understands() {
    let server = start(banned()).await;
    for deny in [401, 403, 429, 503] {
        let reply = ask(
            &server,
            &format!("/v1/authorize?domain=api&deny={deny}"),
            &[],
        )
        .await;
        assert_eq!(reply.status, deny);
        let status = format!(r#""status":{deny}"#);
        assert!(reply.body.contains(&status), "{}", reply.body);
    }
}

#[tokio::test]
async fn any_method_may_ask() {
    let server = start(banned()).await;
    for method in ["POST", "HEAD", "PURGE"] {
        let request = format!(
            "{method} /v1/authorize?domain=api HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(server.exchange(&request).await.status, 429);
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_do_not_hide_a_path() {
    let server = Server::start(RULES).await;
    let request = [
        &b"GET /v1/authorize?domain=api HTTP/1.1\r\nHost: tidegate\r\nConnection: close\r\n"[..],
        b"X-Forwarded-Method: POST\r\nX-Forwarded-Uri: /login?\xff\r\n\r\n",
    ]
    .concat();
    assert_eq!(server.exchange(&request).await.status, 200);
    assert_eq!(server.exchange(&request).await.status, 429);
}

#[tokio::test]
async fn path_and_method_are_those_of_the_client() {
    let server = Server::start(RULES).await;
    let login = |uri: &str, client: u8| {
        [
            format!("X-Forwarded-For: 203.0.113.{client}"),
            format!("X-Forwarded-Uri: {uri}"),
            "X-Forwarded-Method: POST".to_owned(),
        ]
    };
    for (client, uri) in ["/login", "//login", "/%6Cogin?x=1", "/a/../login"]
        .iter()
        .enumerate()
    {
        let headers = login(uri, u8::try_from(client).unwrap());
        let headers = headers.each_ref().map(String::as_str);
        let expected = if client == 0 { 200 } else { 429 };
        assert_eq!(statuses(&server, &[&headers]).await, [expected], "{uri}");
    }
    // GET has no limit, and our own path is not the client's.
    let get = [
        "X-Forwarded-For: 203.0.113.9",
        "X-Forwarded-Uri: /login",
        "X-Forwarded-Method: GET",
    ];
    assert_eq!(statuses(&server, &[&get]).await, [200]);
}

#[tokio::test]
async fn bypass_headers_of_another_convention_are_not_read() {
    // A proxy that writes one set hands the other through as the client sent it.
    let spoofed = [
        "X-Forwarded-For: 203.0.113.7",
        "X-Forwarded-Uri: /login",
        "X-Forwarded-Method: POST",
        "X-Original-URI: /harmless",
        "X-Original-Method: GET",
    ];
    let server = Server::start(RULES).await;
    assert_eq!(statuses(&server, &[&spoofed, &spoofed]).await, [200, 429]);
    let server = start(AuthorizeConfig {
        request_headers: RequestHeaders::x_original(),
        ..AuthorizeConfig::default()
    })
    .await;
    assert_eq!(statuses(&server, &[&spoofed, &spoofed]).await, [200, 200]);
}

#[tokio::test]
async fn bypass_a_header_that_the_client_sent_before_the_proxy() {
    let server = Server::start(RULES).await;
    let doubled = [
        "X-Forwarded-For: 6.6.6.6",
        "X-Forwarded-For: 203.0.113.7",
        "X-Forwarded-Uri: /harmless",
        "X-Forwarded-Uri: /login",
        "X-Forwarded-Method: POST",
    ];
    assert_eq!(statuses(&server, &[&doubled, &doubled]).await, [200, 429]);
}

#[tokio::test]
async fn who_is_not_trusted_speaks_for_itself() {
    let server = start(AuthorizeConfig {
        client_address: trusting(&["10.0.0.0/8"]),
        ..AuthorizeConfig::default()
    })
    .await;
    let asked = ["1.1.1.1", "2.2.2.2", "3.3.3.3"].map(|client| {
        [
            format!("X-Forwarded-For: {client}"),
            "X-Forwarded-Uri: /login".to_owned(),
            "X-Forwarded-Method: POST".to_owned(),
        ]
    });
    let mut seen = Vec::new();
    for headers in &asked {
        let headers = headers.each_ref().map(String::as_str);
        seen.extend(statuses(&server, &[&headers]).await);
    }
    // All of them are 127.0.0.1, twice a minute, and nobody asked for /login.
    assert_eq!(seen, [200, 200, 429]);
}

#[tokio::test]
async fn descriptors_are_made_as_configured() {
    let server = start(AuthorizeConfig {
        descriptors: descriptors(&[&[("key", "header:X-Api-Key")], &[("key", "query:key")]]),
        ..AuthorizeConfig::default()
    })
    .await;
    let alice: &[&str] = &["X-Api-Key: alice"];
    let bob: &[&str] = &["X-Api-Key: bob"];
    let in_query: &[&str] = &["X-Forwarded-Uri: /?key=alice"];
    let nobody: &[&str] = &[];
    let asked = [alice, bob, in_query, nobody, nobody];
    assert_eq!(statuses(&server, &asked).await, [200, 200, 429, 200, 200]);
}

#[tokio::test]
async fn the_domain_may_be_fixed() {
    let server = start(AuthorizeConfig {
        domain: AuthorizeDomain::Fixed("api".to_owned()),
        ..banned()
    })
    .await;
    assert_eq!(ask(&server, "/v1/authorize", &[]).await.status, 429);
    let reply = ask(&server, "/v1/authorize?domain=other", &[]).await;
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("leave `domain` out"), "{}", reply.body);
}

#[tokio::test]
async fn the_domain_may_be_asked_for() {
    let otherwise = Some("api".to_owned());
    let server = start(AuthorizeConfig {
        domain: AuthorizeDomain::OfQuery { otherwise },
        ..banned()
    })
    .await;
    assert_eq!(ask(&server, "/v1/authorize", &[]).await.status, 429);
    let reply = ask(&server, "/v1/authorize?domain=other", &[]).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn a_question_that_makes_no_sense_says_why() {
    let server = Server::start(RULES).await;
    for (query, expected) in [
        ("", "add ?domain=NAME"),
        ("?domain=", "domain must not be empty"),
        ("?domain=api&deny=500", "`deny` is 401, 403, 429 or 503"),
        ("?domain=api&deny=", "`deny` is 401, 403, 429 or 503"),
        ("?domain=api&status=403", "there is no parameter `status`"),
        ("?domain=api&domain=other", "`domain` is given twice"),
        ("?domain=api&deny=403&deny=403", "`deny` is given twice"),
    ] {
        let reply = ask(&server, &format!("/v1/authorize{query}"), &[]).await;
        assert_eq!(reply.status, 400, "{query}");
        assert!(reply.body.contains(expected), "{query}: {}", reply.body);
    }
}

#[tokio::test]
async fn a_body_is_read_and_thrown_away() {
    let server = Server::start(RULES).await;
    let question = |announced: usize, body: &str| {
        format!(
            "POST /v1/authorize?domain=api HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Content-Length: {announced}\r\n\r\n{body}"
        )
    };
    let read = server.exchange(&question(4, "body")).await;
    assert_eq!(read.status, 200);
    // The announced length is enough.
    let too_large = server.exchange(&question(1 << 20, "")).await;
    assert_eq!(too_large.status, 413);
}

/// A token for `user`, signed by this secret, that never expires.
fn token(secret: &[u8], user: &str) -> String {
    token_until(secret, user, u64::MAX)
}

fn token_until(secret: &[u8], user: &str, expires_at_s: u64) -> String {
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let claims = format!(r#"{{"sub":"{user}","exp":{expires_at_s}}}"#);
    let message = format!(
        "{}.{}",
        encode(br#"{"alg":"HS256"}"#),
        encode(claims.as_bytes())
    );
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    let signature = ring::hmac::sign(&key, message.as_bytes());
    format!(
        "Authorization: Bearer {message}.{}",
        encode(signature.as_ref())
    )
}

fn tokens(secret: &[u8], bad_token: BadToken) -> Identities {
    let settings = TokenSettings {
        bad_token,
        leeway: Duration::ZERO,
        ..TokenSettings::new(AcceptedNames::Any, AcceptedNames::Any)
    };
    let keys = TokenKeys::from_secret(secret).unwrap();
    Identities::default().with_tokens(Arc::new(TokenVerifier::new(settings, keys)))
}

/// Limits users by the claim `sub`, and clients by their address.
fn by_user(identities: Identities) -> AuthorizeConfig {
    AuthorizeConfig {
        descriptors: descriptors(&[
            &[("remote_address", "client_address")],
            &[("key", "claim:sub")],
        ]),
        identities: Arc::new(ArcSwap::from_pointee(identities)),
        ..AuthorizeConfig::default()
    }
}

#[tokio::test]
async fn users_are_told_apart_by_their_tokens() {
    let server = start(by_user(tokens(&[1; 32], BadToken::Deny))).await;
    let (ann, bob) = (token(&[1; 32], "ann"), token(&[1; 32], "bob"));
    let from = |last: u8| format!("X-Forwarded-For: 203.0.113.{last}");
    let asked: [&[&str]; 4] = [
        &[&ann, &from(1)],
        &[&bob, &from(2)],
        // The same user from elsewhere, her token known by now.
        &[&ann, &from(3)],
        &[&from(4)],
    ];
    assert_eq!(statuses(&server, &asked).await, [200, 200, 429, 200]);
}

#[tokio::test]
async fn a_forged_token_is_401_until_its_address_is_over_the_limit() {
    let server = start(by_user(tokens(&[1; 32], BadToken::Deny))).await;
    let forged = token(&[2; 32], "ann");
    let client = "X-Forwarded-For: 203.0.113.1";
    let reply = ask(&server, "/v1/authorize?domain=api", &[&forged, client]).await;
    assert_eq!(reply.status, 401);
    assert_eq!(
        reply.header("www-authenticate"),
        Some("Bearer error=\"invalid_token\"")
    );
    assert!(
        reply.body.contains("token signature is wrong"),
        "{}",
        reply.body
    );
    let asked: [&[&str]; 2] = [&[&forged, client], &[&forged, client]];
    assert_eq!(statuses(&server, &asked).await, [401, 429]);
}

/// Without a limit by address, forged tokens would be checked at any rate.
#[tokio::test]
async fn of_one_address_few_bad_tokens_are_checked() {
    let config = AuthorizeConfig {
        descriptors: descriptors(&[&[("user", "claim:sub")]]),
        identities: Arc::new(ArcSwap::from_pointee(tokens(&[1; 32], BadToken::Deny))),
        ..AuthorizeConfig::default()
    };
    let server = start(config).await;
    let (good, forged) = (token(&[1; 32], "ann"), token(&[2; 32], "ann"));
    let (client, other) = (
        "X-Forwarded-For: 203.0.113.1",
        "X-Forwarded-For: 203.0.113.2",
    );
    assert_eq!(statuses(&server, &[&[&good, client]]).await, [200]);
    let mut n_checked = 0;
    let denied = loop {
        let target = "/v1/authorize?domain=api&deny=403";
        let reply = ask(&server, target, &[&forged, client]).await;
        if reply.status != 401 {
            break reply;
        }
        n_checked += 1;
        assert!(n_checked < 10_000, "any number is checked");
    };
    assert_eq!(
        (denied.status, denied.header("retry-after")),
        (403, Some("1"))
    );
    assert!(n_checked >= 100, "{n_checked}");
    let asked: [&[&str]; 2] = [&[&good, client], &[&forged, other]];
    assert_eq!(statuses(&server, &asked).await, [200, 401]);
}

/// The first request with a token is decided in two steps. One that the second step denies costs nothing in the first.
#[tokio::test]
async fn a_denied_user_costs_its_address_nothing() {
    let server = start(by_user(tokens(&[1; 32], BadToken::Deny))).await;
    let ann = token(&[1; 32], "ann");
    let again = token_until(&[1; 32], "ann", u64::MAX - 1);
    let client = "X-Forwarded-For: 203.0.113.1";
    let asked: [&[&str]; 4] = [
        &[&ann, client],
        // Another token, which is verified after the limit of the address was charged.
        &[&again, client],
        &[client],
        &[client],
    ];
    assert_eq!(statuses(&server, &asked).await, [200, 429, 200, 429]);
}

/// The first request with a token is decided in two steps, and the later ones in one. The client is told the same by both.
#[tokio::test]
async fn the_first_request_with_a_token_tells_of_the_tighter_limit() {
    let check = async |by_address: &str, by_user: &str, expected: &str| {
        let config = AuthorizeConfig {
            descriptors: descriptors(&[
                &[(by_address, "client_address")],
                &[(by_user, "claim:sub")],
            ]),
            identities: Arc::new(ArcSwap::from_pointee(tokens(&[1; 32], BadToken::Deny))),
            ..AuthorizeConfig::default()
        };
        let server = start(config).await;
        let ann = token(&[1; 32], "ann");
        for _ in 0..2 {
            let reply = ask(&server, "/v1/authorize?domain=api", &[&ann]).await;
            assert_eq!(reply.header("x-ratelimit-limit"), Some(expected));
        }
    };
    check("remote_address", "many", "2").await;
    check("many", "remote_address", "2").await;
    check("unlimited", "many", "100").await;
    check("many", "unlimited", "100").await;
}

#[tokio::test]
async fn a_token_can_be_demanded() {
    let settings = TokenSettings {
        missing_token: MissingToken::Deny,
        ..TokenSettings::new(AcceptedNames::Any, AcceptedNames::Any)
    };
    let keys = TokenKeys::from_secret(&[1; 32]).unwrap();
    let verifier = TokenVerifier::new(settings, keys);
    let config = by_user(Identities::default().with_tokens(Arc::new(verifier)));
    let server = start(config).await;
    let client = "X-Forwarded-For: 203.0.113.1";
    let reply = ask(&server, "/v1/authorize?domain=api", &[client]).await;
    assert_eq!(reply.status, 401);
    assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    let ann = token(&[1; 32], "ann");
    let other = "X-Forwarded-For: 203.0.113.2";
    let preflight: &[&str] = &[
        "X-Forwarded-Method: OPTIONS",
        "Origin: https://shop.example",
        "Access-Control-Request-Method: GET",
        "X-Forwarded-For: 203.0.113.3",
    ];
    // No browser asks for an upgrade in a preflight.
    let upgrade = [preflight, &["Upgrade: websocket"]].concat();
    // A caller without a token meets the limit of its address all the same.
    let asked: [&[&str]; 5] = [&[client], &[client], &[&ann, other], preflight, &upgrade];
    let expected = [401, 429, 200, 200, 401];
    assert_eq!(statuses(&server, &asked).await, expected);
}

#[tokio::test]
async fn a_bad_token_can_count_as_none() {
    let server = start(by_user(tokens(&[1; 32], BadToken::Anonymous))).await;
    let forged = token(&[2; 32], "ann");
    let good = token(&[1; 32], "ann");
    let from = |last: u8| format!("X-Forwarded-For: 203.0.113.{last}");
    let asked: [&[&str]; 4] = [
        &[&forged, &from(1)],
        &[&forged, &from(2)],
        // Nothing was charged to her.
        &[&good, &from(3)],
        &[&good, &from(4)],
    ];
    assert_eq!(statuses(&server, &asked).await, [200, 200, 200, 429]);
}

#[tokio::test]
async fn identities_are_replaced_while_requests_are_answered() {
    let config = by_user(tokens(&[1; 32], BadToken::Deny));
    let identities = Arc::clone(&config.identities);
    let server = start(config).await;
    let (old, new) = (token(&[1; 32], "ann"), token(&[2; 32], "bob"));
    assert_eq!(statuses(&server, &[&[&old], &[&new]]).await, [200, 401]);
    identities.store(Arc::new(tokens(&[2; 32], BadToken::Deny)));
    let from = "X-Forwarded-For: 203.0.113.1";
    let asked: [&[&str]; 2] = [&[&old, from], &[&new, from]];
    assert_eq!(statuses(&server, &asked).await, [401, 200]);
}

#[tokio::test]
async fn an_api_key_that_is_known_has_limits_of_its_own() {
    let hasher = ApiKeyHasher::new(&[1; 32]).unwrap();
    let table = format!("keys: [{{id: acme, hash: {}}}]", hasher.hash_hex("k1"));
    let table = ApiKeyTable::read("keys.yaml", table.as_bytes()).unwrap();
    let place = "header:x-api-key".parse().unwrap();
    let keys = ApiKeys::new(place, hasher, table);
    let identities = Identities::default().with_api_keys(Arc::new(keys));
    let config = AuthorizeConfig {
        descriptors: descriptors(&[&[("key", "api_key")]]),
        identities: Arc::new(ArcSwap::from_pointee(identities)),
        ..AuthorizeConfig::default()
    };
    let server = start(config).await;
    let (known, unknown) = ("X-Api-Key: k1", "X-Api-Key: k2");
    let asked: [&[&str]; 4] = [&[known], &[known], &[unknown], &[unknown]];
    assert_eq!(statuses(&server, &asked).await, [200, 429, 200, 200]);
}

/// A server with a limit of one request for each key, which is read so.
async fn limited_by(source: &str) -> Server {
    let authorize = AuthorizeConfig {
        descriptors: descriptors(&[&[("key", source)]]),
        ..AuthorizeConfig::default()
    };
    start(authorize).await
}

/// The API behind may read any of the lines, so no line may be a new caller.
#[tokio::test]
async fn lines_of_one_header_that_differ_are_denied() {
    let server = limited_by("header:x-api-key").await;
    let secret = "X-Api-Key: secret";
    let asked: [&[&str]; 6] = [
        &[secret],
        &[secret],
        &[secret, "X-Api-Key: 1"],
        &["X-Api-Key: 2", secret],
        &[secret, secret],
        &["X-Other: 1", "X-Other: 2", "X-Api-Key: fresh"],
    ];
    let expected = [200, 429, 400, 400, 429, 200];
    assert_eq!(statuses(&server, &asked).await, expected);
    let reply = ask(
        &server,
        "/v1/authorize?domain=api&deny=403",
        &[secret, "X-Api-Key: 1"],
    )
    .await;
    assert_eq!(
        reply.status, 400,
        "nginx takes no 4xx but 401 and 403 for a denial"
    );
    let reason = "the lines of the header `x-api-key` differ";
    assert!(reply.body.contains(reason), "{}", reply.body);
}

#[tokio::test]
async fn a_source_can_say_which_values_of_a_header_count() {
    let check = async |source: &str, expected: [u16; 5]| {
        let server = limited_by(source).await;
        let asked: [&[&str]; 5] = [
            &["X-Api-Key: a"],
            &["X-Api-Key: a", "X-Api-Key: b"],
            &["X-Api-Key: b, a"],
            &["X-Api-Key: c,d"],
            &["X-Api-Key: d"],
        ];
        assert_eq!(statuses(&server, &asked).await, expected, "{source}");
    };
    check("header:x-api-key first", [200, 429, 200, 200, 200]).await;
    check("header:x-api-key last", [200, 200, 429, 200, 429]).await;
    check("header:x-api-key each", [200, 429, 429, 200, 429]).await;
    // One line is one value, commas included.
    check("header:x-api-key", [200, 400, 200, 200, 200]).await;
}

/// Servers that make variables of headers (CGI, WSGI, PHP) take both names for one.
#[tokio::test]
async fn a_name_with_underscores_is_another_line_of_its_header() {
    let asked: [&[&str]; 7] = [
        &["X_Api_Key: a"],
        &["X-Api-Key: a"],
        &["X-Api-Key: b", "X_Api_Key: b"],
        &["X-Api-Key: b", "X_Api_Key: c"],
        &["X_Api-Key: c", "X-Api_Key: b"],
        &["X-Api-Key: d"],
        &["X-ApiKey: d", "X-Api-Keys: d", "X-Api-Key: e"],
    ];
    let check = async |source: &str, expected: [u16; 7]| {
        let server = limited_by(source).await;
        assert_eq!(statuses(&server, &asked).await, expected, "{source}");
    };
    let alike = [200, 429, 200, 400, 400, 200, 200];
    check("header:x-api-key", alike).await;
    check("header:x_api_key", alike).await;
    // Nobody knows which of two spellings a server takes for the first.
    check("header:x-api-key first", alike).await;
    check("header:x-api-key last", alike).await;
    let each = [200, 429, 200, 429, 429, 200, 200];
    check("header:x-api-key each", each).await;
}

#[tokio::test]
async fn cookies_and_query_parameters_that_differ_are_denied() {
    let query = |query: &str| format!("X-Forwarded-Uri: /?{query}");
    let cookies = |cookies: &str| format!("Cookie: {cookies}");
    let check = async |source: &str, asked: [String; 5], expected: [u16; 5]| {
        let server = limited_by(source).await;
        let asked = asked.each_ref().map(|line| [line.as_str()]);
        let asked = asked.each_ref().map(|lines| &lines[..]);
        assert_eq!(statuses(&server, &asked).await, expected, "{source}");
    };
    let of_query = || ["k=a", "k=a&k=a", "k=a&k=b", "k=b&%6b=a", "x=1&k=b"].map(query);
    let of_cookies = || ["k=a", "k=a; k=\"a\"", "k=a; k=b", "k=b;k=a", "x=1; k=b"].map(cookies);
    for (suffix, expected) in [
        ("", [200, 429, 400, 400, 200]),
        (" first", [200, 429, 429, 200, 429]),
        (" last", [200, 429, 200, 429, 429]),
        (" each", [200, 429, 429, 429, 200]),
    ] {
        check(&format!("query:k{suffix}"), of_query(), expected).await;
        check(&format!("cookie:k{suffix}"), of_cookies(), expected).await;
    }
}

/// Envoy's `ext_authz` joins the lines of its client, and hands them on to the API as they were.
#[tokio::test]
async fn lines_that_a_proxy_joined_are_denied_if_they_differ() {
    let authorize = AuthorizeConfig {
        descriptors: descriptors(&[
            &[("key", "header:x-api-key")],
            &[("key", "header:x-list each")],
        ]),
        header_lines: HeaderForm::Joined,
        ..AuthorizeConfig::default()
    };
    let server = start(authorize).await;
    let asked: [&[&str]; 7] = [
        &["X-Api-Key: secret"],
        &["X-Api-Key: secret"],
        &["X-Api-Key: secret,1"],
        &["X-Api-Key: 1, secret"],
        &["X-Api-Key: secret,secret"],
        &["X-Other: 1,2", "X-Api-Key: fresh"],
        &["X-List: a,b"],
    ];
    let expected = [200, 429, 400, 400, 429, 200, 200];
    assert_eq!(statuses(&server, &asked).await, expected);
}

#[tokio::test]
async fn more_values_than_are_charged_are_denied() {
    let server = limited_by("header:x-api-key each").await;
    let line = |n_values: u32| {
        let values = (0..n_values).map(|it| format!("n{n_values}-{it}"));
        format!("X-Api-Key: {}", values.collect::<Vec<_>>().join(","))
    };
    let asked = statuses(&server, &[&[&line(8)], &[&line(9)]]).await;
    assert_eq!(asked, [200, 400]);
}

#[tokio::test]
async fn a_last_slash_can_be_left_out() {
    let check = async |source: &str, expected: [u16; 4]| {
        let server = limited_by(source).await;
        let asked: [&[&str]; 4] = [
            &["X-Forwarded-Uri: /login"],
            &["X-Forwarded-Uri: /login/"],
            &["X-Forwarded-Uri: /login;x=1"],
            &["X-Forwarded-Uri: /"],
        ];
        assert_eq!(statuses(&server, &asked).await, expected, "{source}");
    };
    check("path", [200, 200, 429, 200]).await;
    check("path without_last_slash", [200, 429, 429, 200]).await;
}
