//! Paths that servers read differently: the upstream gets the path that the route was matched by, or none.

use std::num::NonZeroU8;
use std::sync::Arc;

use tidegate_gateway::{
    EscapedSlashes, GatewayBounds, GatewayConfig, PathMatch, PathPattern, Requirement, RouteConfig,
};
use tidegate_identify::{Recipe, Recipes, Source};

use crate::harness::{Received, RecordingUpstream, RunningGateway, config, route};

/// A route that adds its name to its requests, so that the upstream records it.
fn named(name: &'static str, path: PathMatch) -> RouteConfig {
    let mut route = route(name);
    route.matches.path = path;
    let header = http::HeaderName::from_static("x-route");
    let value = http::HeaderValue::from_static(name);
    route.request_headers.set.push((header, value));
    route
}

/// A route for administrators, one for projects by id, and one for the rest.
fn three_routes(mut config: GatewayConfig) -> GatewayConfig {
    let project = PathPattern::parse("/projects/{id}").unwrap();
    config.routes = vec![
        named("admin", PathMatch::Prefix("/admin".to_owned())),
        named("project", PathMatch::Pattern(project)),
        named("rest", PathMatch::Any),
    ];
    config.routes[1].escaped_slashes = EscapedSlashes::Keep;
    config
}

async fn get(gateway: &RunningGateway, path: &[u8]) -> Received {
    let request = [b"GET ", path, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
    gateway.send(&request).await.unwrap()
}

#[tokio::test]
async fn the_upstream_gets_the_path_that_was_matched() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start_with(
        three_routes(config(upstream.address)),
        GatewayBounds::default(),
    );
    let cases: [(&[u8], &str, &str); 17] = [
        (b"/a?b=//c/../d", "/a?b=//c/../d", "rest"),
        (b"/admin/x", "/admin/x", "admin"),
        (b"//admin", "/admin", "admin"),
        (b"/x/../admin", "/admin", "admin"),
        (b"/x//../admin?q", "/admin?q", "admin"),
        (b"/x/%2e%2E/admin", "/admin", "admin"),
        (b"/.%2e/admin", "/admin", "admin"),
        (b"/%61dmin", "/admin", "admin"),
        (b"/admin/..", "/", "rest"),
        (b"/caf%c3%a9", "/caf%C3%A9", "rest"),
        ("/café".as_bytes(), "/caf%C3%A9", "rest"),
        (b"/a\\b", "/a%5Cb", "rest"),
        // Ids with slashes, parameters and signed paths arrive as they were sent.
        (
            b"/projects/group%2Fname",
            "/projects/group%2Fname",
            "project",
        ),
        (b"/group%2Fname/x", "/group%2Fname/x", "rest"),
        (b"/cart;v=1", "/cart;v=1", "rest"),
        (b"/arn%3Aaws%2Bx", "/arn%3Aaws%2Bx", "rest"),
        (b"/100%25", "/100%25", "rest"),
    ];
    for (sent, _, _) in cases {
        let sent_text = String::from_utf8_lossy(sent);
        assert_eq!(get(&gateway, sent).await.status, 200, "{sent_text}");
    }
    let requests = upstream.requests();
    assert_eq!(requests.len(), cases.len());
    for (request, (sent, arrived, route)) in requests.iter().zip(cases) {
        let sent = String::from_utf8_lossy(sent);
        let first = format!("GET {arrived} HTTP/1.1\r\n");
        assert!(request.starts_with(&first), "{sent}: {request}");
        let header = format!("\r\nx-route: {route}\r\n");
        assert!(request.contains(&header), "{sent}: {request}");
    }
}

#[tokio::test]
async fn a_path_that_could_lead_elsewhere_is_rejected() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start_with(
        three_routes(config(upstream.address)),
        GatewayBounds::default(),
    );
    for path in [
        // Dot segments that come to light when a server decodes or cleans the path.
        "/x/..%2fadmin",
        "/x/..%2Fx",
        "/x%2f..%2fadmin",
        "/x/%2e%2e%2fadmin",
        "/x/..%5cadmin",
        "/x\\..\\admin",
        "/projects/..%2Fadmin",
        "/x/..;/admin",
        "/x/..%3b/admin",
        "/x/.;a=b/admin",
        "/x/%252e%252e/admin",
        "/x/%252e%252e%252fadmin",
        "/x/%25252e./admin",
        // The same resource as on another route, for a server that decodes it.
        "/admin%2Fx",
        "/%2fadmin",
        "/admin%5Cx",
        "/admin;a=b/x",
        "/admin%3Bx",
        "/%2561dmin",
        "/projects%2F7",
        // The route keeps escaped slashes, and decides about nothing else.
        "/projects/7%5Cadmin",
        "/projects/7%252Fadmin",
        // A server written in C takes `/admin`.
        "/admin%00x",
        "/x%00",
    ] {
        let received = get(&gateway, path.as_bytes()).await;
        assert_eq!(received.status, 400, "{path}");
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn every_spelling_of_a_path_has_one_counter() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    // Ten a day for each value.
    let by_path = Recipe::new([("user", Source::Path)]);
    config.descriptors = Arc::new(Recipes::new(vec![by_path]).unwrap());
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let spellings: [&[u8]; 10] = [
        "/a/é@".as_bytes(),
        b"/a/%c3%a9@",
        b"/a/%C3%A9%40",
        b"//a/./%C3%A9@",
        b"/%61/%C3%A9@",
        b"/a%2F%C3%A9@",
        b"/a\\%C3%A9@",
        b"/a/%C3%A9@;x",
        b"/a/%25C3%25A9@",
        b"/a;b/%C3%A9@",
    ];
    for (remaining, path) in (0..10).rev().zip(spellings) {
        let received = get(&gateway, path).await;
        let remaining = remaining.to_string();
        let text = String::from_utf8_lossy(path);
        assert_eq!(
            received.header("x-ratelimit-remaining"),
            Some(&*remaining),
            "{text}"
        );
    }
}

#[tokio::test]
async fn an_escaped_slash_cannot_get_around_a_later_route() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    let pattern = |text| PathMatch::Pattern(PathPattern::parse(text).unwrap());
    config.routes = vec![
        named("public", pattern("/projects/{id}")),
        named("admin", pattern("/projects/{id}/admin")),
    ];
    config.routes[1].require.push(Requirement {
        source: Source::Header("x-admin".to_owned()),
        allow: Some(vec!["yes".to_owned()]),
        deny: Vec::new(),
    });
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    for path in [
        "/projects/7%2Fadmin",
        "/projects/7%2fadmin",
        "/projects/7%5Cadmin",
        "/projects/7\\admin",
        "/projects/7%252Fadmin",
        "/projects/7;x%2Fadmin",
        // No route takes `/projects/7/users`.
        "/projects/7%2Fusers",
    ] {
        let received = get(&gateway, path.as_bytes()).await;
        assert_eq!(received.status, 400, "{path}");
    }
    assert_eq!(get(&gateway, b"/projects/7").await.status, 200);
    assert_eq!(get(&gateway, b"/projects/7/admin").await.status, 403);
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn a_route_that_keeps_escaped_slashes_gives_way_to_earlier_ones() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    let pattern = |text| PathMatch::Pattern(PathPattern::parse(text).unwrap());
    config.routes = vec![
        named("admin", pattern("/projects/{id}/admin")),
        named("project", pattern("/projects/{id}")),
        named("issues", pattern("/projects/{id}/issues")),
    ];
    config.routes[1].escaped_slashes = EscapedSlashes::Keep;
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    for (path, status) in [
        ("/projects/group%2Fname", 200),
        ("/projects/group%2fissues", 200),
        ("/projects/group%2Fadmin", 400),
        ("/projects/group%2Fname/issues", 400),
    ] {
        let received = get(&gateway, path.as_bytes()).await;
        assert_eq!(received.status, status, "{path}");
    }
    let requests = upstream.requests();
    assert!(requests[0].starts_with("GET /projects/group%2Fname HTTP/1.1\r\n"));
    assert!(requests[1].starts_with("GET /projects/group%2Fissues HTTP/1.1\r\n"));
    let is_of_project = |request: &String| request.contains("\r\nx-route: project\r\n");
    assert!(requests.iter().all(is_of_project));
}

#[tokio::test]
async fn every_spelling_of_a_segment_has_one_counter() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    let second = Source::PathSegment(NonZeroU8::new(2).unwrap());
    let by_segment = Recipe::new([("user", second)]);
    config.descriptors = Arc::new(Recipes::new(vec![by_segment]).unwrap());
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let spellings = [
        "/users/42",
        "/users/42;a=1",
        "/users/42;a=2/posts",
        "/users/%34%32",
        "/users/%2534%2532",
        "/users%2F42",
        "/users;x/42%3Bx",
    ];
    for (remaining, path) in (0..10).rev().zip(spellings) {
        let received = get(&gateway, path.as_bytes()).await;
        let remaining = remaining.to_string();
        let told = received.header("x-ratelimit-remaining");
        assert_eq!(told, Some(&*remaining), "{path}");
    }
}
