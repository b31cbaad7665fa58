//! The `OpenAPI` document against the server that runs: every path and method of it answers as described.
//! That every route of the server is in it is held beside the routes.

use serde_json::{Value, json};
use tidegate_server::AdminConfig;

use crate::desk::{Ask, Desk, Reply, TOKEN, guarded, local, user};
use crate::schema::Document;

/// One path with one method.
struct Operation {
    method: String,
    path: String,
    description: Value,
}

/// The id of a decision of this server.
async fn denied(desk: &Desk) -> String {
    while desk.passes("over").await {}
    let listed = desk.get("/api/v1/decisions?denied=true&limit=1").await.ok();
    listed["decisions"][0]["id"].as_str().unwrap().to_owned()
}

/// The document, with paths that lead somewhere: an id in the place of a parameter.
async fn document(desk: &Desk) -> Document {
    let mut document = desk.get("/api/v1/openapi.json").await.ok();
    let paths = document["paths"].as_object_mut().unwrap();
    let template = "/api/v1/decisions/{id}";
    let operations = paths.remove(template).unwrap();
    paths.insert(template.replace("{id}", &denied(desk).await), operations);
    Document(document)
}

fn operations(document: &Document) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, methods) in document.0["paths"].as_object().unwrap() {
        for (method, description) in methods.as_object().unwrap() {
            operations.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                description: description.clone(),
            });
        }
    }
    assert!(operations.len() > 20, "all of them");
    operations
}

// === impl Operation ===

impl Operation {
    /// The request of the document's example.
    fn ask(&self) -> Ask {
        let ask = Ask::new(&self.method, &self.path);
        match self
            .description
            .pointer("/requestBody/content/application~1json/example")
        {
            Some(example) => ask.body(&example.to_string()),
            None => ask,
        }
    }

    fn is_change(&self) -> bool {
        self.description["security"] == json!([{"token": []}])
    }

    fn takes_body(&self) -> bool {
        self.description.get("requestBody").is_some()
    }

    /// Holds a reply against what is described.
    #[track_caller]
    fn check(&self, document: &Document, reply: &Reply, status: u16) {
        let name = format!("{} {}", self.method, self.path);
        assert_eq!(reply.status, status, "{name}: {reply:?}");
        let described = &self.description["responses"][status.to_string()];
        assert!(described.is_object(), "{name}: {status} is not described");
        let described = document.resolve(described);
        for header in described["headers"].as_object().into_iter().flatten() {
            let header = header.0.to_lowercase();
            assert!(reply.header(&header).is_some(), "{name}: no {header}");
        }
        let (kind, content) = described["content"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        let sent = reply.header("content-type").unwrap();
        assert!(sent.starts_with(kind.as_str()), "{name}: {sent}");
        let value = if kind.ends_with("json") {
            reply.json()
        } else {
            Value::String(reply.body.clone())
        };
        let faults = document.faults(&content["schema"], &value);
        assert!(faults.is_empty(), "{name}: {faults:#?}");
    }
}

#[tokio::test]
async fn every_operation_answers_as_described() {
    let desk = Desk::start();
    let document = document(&desk).await;
    // Something to tell of.
    desk.passes("42").await;
    desk.post("/api/v1/reload", &Value::Null).await;
    let ban = json!({"domain": "api", "entries": [{"key": "partner"}], "until_lifted": true});
    desk.post("/api/v1/keys/ban", &ban).await.ok();
    for operation in operations(&document) {
        let reply = desk.send(&operation.ask()).await;
        operation.check(&document, &reply, 200);
    }
}

#[tokio::test]
async fn the_examples_fit_their_schemas() {
    let desk = Desk::start();
    let document = document(&desk).await;
    for operation in operations(&document).iter().filter(|it| it.takes_body()) {
        let content = "/requestBody/content/application~1json";
        let content = operation.description.pointer(content).unwrap();
        let faults = document.faults(&content["schema"], &content["example"]);
        assert!(faults.is_empty(), "{}: {faults:#?}", operation.path);
    }
}

#[tokio::test]
async fn changes_and_nothing_else_need_the_token() {
    let desk = Desk::start_with(guarded());
    let document = document(&desk).await;
    for operation in operations(&document) {
        let ask = operation.ask();
        let status = if operation.is_change() { 401 } else { 200 };
        operation.check(&document, &desk.send(&ask).await, status);
        let wrong = ask.clone().token("open-wide");
        operation.check(&document, &desk.send(&wrong).await, status);
        operation.check(&document, &desk.send(&ask.token(TOKEN)).await, 200);
    }
}

#[tokio::test]
async fn changes_are_refused_where_others_can_come_without_a_token() {
    let desk = Desk::start_with(AdminConfig::default());
    let document = document(&desk).await;
    for operation in operations(&document) {
        let status = if operation.is_change() { 403 } else { 200 };
        operation.check(&document, &desk.send(&operation.ask()).await, status);
    }
}

#[tokio::test]
async fn bad_bodies_are_answered_as_described() {
    let desk = Desk::start();
    let document = document(&desk).await;
    for operation in operations(&document).iter().filter(|it| it.takes_body()) {
        for body in ["", "{", "[]", r#"{"domain": 1}"#, r#"{"unknown": true}"#] {
            let ask = Ask::new(&operation.method, &operation.path).body(body);
            operation.check(&document, &desk.send(&ask).await, 400);
        }
        let large = Ask::new(&operation.method, &operation.path).body(&" ".repeat(70_000));
        operation.check(&document, &desk.send(&large).await, 413);
    }
}

#[tokio::test]
async fn callers_that_no_rule_knows_are_answered_as_described() {
    let desk = Desk::start();
    let document = document(&desk).await;
    for operation in operations(&document) {
        let is_described = operation.description["responses"].get("404").is_some();
        let example = operation
            .description
            .pointer("/requestBody/content/application~1json/example");
        if let (true, Some(example)) = (is_described, example) {
            let mut elsewhere = example.clone();
            elsewhere["domain"] = "elsewhere".into();
            let reply = desk.post(&operation.path, &elsewhere).await;
            operation.check(&document, &reply, 404);
        }
    }
}

#[tokio::test]
async fn bad_queries_are_answered_as_described() {
    let desk = Desk::start();
    let document = document(&desk).await;
    let operations = operations(&document);
    let with_query = operations
        .iter()
        .filter(|it| it.description.get("parameters").is_some());
    for operation in with_query {
        let query = |query: &str| Ask::new("GET", &format!("{}?{query}", operation.path));
        operation.check(&document, &desk.send(&query("lmit=1")).await, 400);
        for parameter in operation.description["parameters"].as_array().unwrap() {
            let name = parameter["name"].as_str().unwrap();
            let schema = document.resolve(&parameter["schema"]);
            if schema["type"] == "integer" {
                let bad = [format!("{name}=x"), format!("{name}=-1")];
                let above = schema["maximum"]
                    .as_u64()
                    .map(|most| format!("{name}={}", most + 1));
                for bad in bad.into_iter().chain(above) {
                    operation.check(&document, &desk.send(&query(&bad)).await, 400);
                }
            }
            if schema.get("enum").is_some() {
                let bad = format!("{name}=neither");
                operation.check(&document, &desk.send(&query(&bad)).await, 400);
            }
        }
    }
}

#[tokio::test]
async fn a_reload_that_fails_is_answered_as_described() {
    let desk = Desk::start();
    let document = document(&desk).await;
    "domain: [".clone_into(&mut desk.hooks.rules.lock().unwrap());
    let operations = operations(&document);
    let of_reload = |it: &&Operation| it.path == "/api/v1/reload" && it.is_change();
    let reload = operations.iter().find(of_reload).unwrap();
    reload.check(&document, &desk.send(&reload.ask()).await, 422);
}

#[tokio::test]
async fn an_end_is_told_as_described() {
    let desk = Desk::start_as(local(), std::time::Duration::from_mins(10));
    let document = document(&desk).await;
    desk.stop();
    // The health turns before the delay begins; until it has, the server may not have heard.
    while desk.get("/healthcheck").await.status == 200 {
        tokio::task::yield_now().await;
    }
    for (path, status) in [("/healthcheck", 500), ("/readyz", 503)] {
        let operations = operations(&document);
        let operation = operations.iter().find(|it| it.path == path).unwrap();
        operation.check(&document, &desk.get(path).await, status);
    }
    // Whoever still asks is still answered.
    assert!(desk.passes("42").await);
    assert_eq!(
        desk.post("/api/v1/keys/lookup", &user("42")).await.status,
        200
    );
}
