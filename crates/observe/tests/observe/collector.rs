//! A receiver of spans that answers as it is told.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A receiver of spans.
pub(crate) struct Collector {
    pub(crate) url: String,
    batches: mpsc::UnboundedReceiver<Batch>,
}

/// What arrived in one request.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

/// A status and a body.
pub(crate) type Answer = (u16, &'static str);

type Answers = Arc<Mutex<Vec<Answer>>>;

// === impl Collector ===

impl Collector {
    /// Gives these answers one after the other, and then `200 {}` to all.
    pub(crate) async fn answering(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let (sender, batches) = mpsc::unbounded_channel();
        let mut answers = answers.to_vec();
        answers.reverse();
        tokio::spawn(accept(listener, Arc::new(Mutex::new(answers)), sender));
        Self { url, batches }
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Batch {
        self.batches.recv().await.unwrap()
    }
}

// === impl Batch ===

impl Batch {
    /// The spans.
    pub(crate) fn spans(&self) -> Vec<Value> {
        let spans = &self.body["resourceSpans"][0]["scopeSpans"][0]["spans"];
        spans.as_array().unwrap().clone()
    }

    /// The attributes of the resource.
    pub(crate) fn resource(&self) -> Vec<(String, String)> {
        attributes(&self.body["resourceSpans"][0]["resource"])
    }
}

/// The attributes of a span or a resource.
pub(crate) fn attributes(of: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let attributes = of["attributes"].as_array().unwrap();
    let pair = |it: &Value| (text(&it["key"]), text(&it["value"]["stringValue"]));
    attributes.iter().map(pair).collect()
}

async fn accept(listener: TcpListener, answers: Answers, batches: mpsc::UnboundedSender<Batch>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (answers, batches) = (Arc::clone(&answers), batches.clone());
        let service = service_fn(move |request| {
            let (answers, batches) = (Arc::clone(&answers), batches.clone());
            async move { Ok::<_, Infallible>(take(request, &answers, &batches).await) }
        });
        // A client that goes away is none of our business.
        let _ = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }
}

async fn take(
    request: Request<Incoming>,
    answers: &Answers,
    batches: &mpsc::UnboundedSender<Batch>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    assert_eq!(head.method, "POST");
    let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    let body = body.collect().await.unwrap().to_bytes();
    let batch = Batch {
        path: head.uri.path().to_owned(),
        headers: head.headers.iter().map(header).collect(),
        body: serde_json::from_slice(&body).unwrap(),
    };
    let (status, body) = answers.lock().unwrap().pop().unwrap_or((200, "{}"));
    // The test may have seen enough.
    let _ = batches.send(batch);
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status.try_into().unwrap();
    response
}
