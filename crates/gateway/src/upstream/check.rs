//! Health checks: a GET on a connection of its own, again and again.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use super::connect::{ProtocolNeed, WireProtocol};
use super::health::CheckStreak;
use super::shared::{SHORTEST_INTERVAL, SharedUpstream};
use super::target::TargetState;
use super::timer::now;
use crate::config::HealthCheck;

/// Checks one target for ever, if the settings ask for it.
pub(super) async fn check_for_ever(upstream: Arc<SharedUpstream>, target: Arc<TargetState>) {
    let Some(settings) = &upstream.config.health_check else {
        return;
    };
    let mut streak = CheckStreak::default();
    let mut ticks = interval(settings.interval.max(SHORTEST_INTERVAL));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut turn = 0_usize;
    loop {
        ticks.tick().await;
        turn = turn.wrapping_add(1);
        let deadline = now() + settings.timeout;
        let checked = check(&upstream, &target, settings, turn, deadline);
        let result = match timeout_at(deadline, checked).await {
            Ok(Ok(status)) if (200..400).contains(&status.as_u16()) => Ok(()),
            Ok(Ok(status)) => Err(format!("status {}", status.as_u16())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("timeout".to_owned()),
        };
        target
            .health
            .check(&target.name, settings, &mut streak, result);
    }
}

/// The status of one check.
async fn check(
    upstream: &SharedUpstream,
    target: &TargetState,
    settings: &HealthCheck,
    turn: usize,
    deadline: Instant,
) -> Result<StatusCode, Box<dyn std::error::Error + Send + Sync>> {
    let opened = upstream
        .connector
        .open(target, ProtocolNeed::Any, turn, deadline)
        .await?;
    let authority = target.config.authority();
    let host = settings.host.as_deref().unwrap_or(&authority);
    let request = Request::get(&settings.path).header(USER_AGENT, "tidegate-health-check");
    let stream = TokioIo::new(opened.stream);
    let response = match opened.protocol {
        WireProtocol::Http1 => {
            let request = request.header(HOST, host).header(CONNECTION, "close");
            let (mut sender, connection) = http1::handshake(stream).await?;
            let sending = sender.send_request(request.body(Empty::<Bytes>::new())?);
            drive(sending, connection).await?
        }
        WireProtocol::Http2 => {
            let scheme = if target.config.is_tls {
                "https"
            } else {
                "http"
            };
            let uri = Uri::builder()
                .scheme(scheme)
                .authority(host)
                .path_and_query(settings.path.as_str())
                .build()?;
            let request = request.uri(uri).body(Empty::<Bytes>::new())?;
            let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
            drive(sender.send_request(request), connection).await?
        }
    };
    Ok(response.status())
}

/// Drives a connection until the response is there. The connection may end first, with the response already read.
async fn drive<R, C>(response: impl Future<Output = R>, connection: impl Future<Output = C>) -> R {
    let mut response = pin!(response);
    tokio::select! {
        response = &mut response => return response,
        _ = connection => {}
    }
    response.await
}
