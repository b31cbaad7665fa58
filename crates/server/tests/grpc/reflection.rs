//! Server reflection, as tools use it.

use prost::Message;

use crate::client::{Server, framed, run};

#[derive(Clone, PartialEq, prost::Message)]
struct Request {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(oneof = "Question", tags = "3, 4, 6, 7")]
    question: Option<Question>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Question {
    #[prost(string, tag = "3")]
    File(String),
    #[prost(string, tag = "4")]
    Symbol(String),
    #[prost(string, tag = "6")]
    Extensions(String),
    #[prost(string, tag = "7")]
    Services(String),
}

#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(message, optional, tag = "2")]
    asked: Option<Request>,
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "6")]
    services: Option<Services>,
    #[prost(message, optional, tag = "7")]
    error: Option<Error>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    services: Vec<Name>,
}

/// Of a service, and the first field of a file.
#[derive(Clone, PartialEq, prost::Message)]
struct Name {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Error {
    #[prost(int32, tag = "1")]
    code: i32,
}

/// Asks all questions in one call of each version.
fn ask(questions: &[Question], assert: impl Fn(Vec<Response>)) {
    let request = |question: &Question| Request {
        host: "tidegate".to_owned(),
        question: Some(question.clone()),
    };
    let requests = questions.iter().map(request).collect::<Vec<_>>();
    let body = requests.iter().map(framed).collect::<Vec<_>>().concat();
    for version in ["v1", "v1alpha"] {
        run(async {
            let server = Server::new("domain: api");
            let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            let reply = server.connect().await.call(&path, &body).await;
            assert_eq!(reply.status(), ("0", ""));
            let mut rest = &reply.body[..];
            let mut responses = Vec::new();
            while let Some((prefix, message)) = rest.split_at_checked(5) {
                let length = u32::from_be_bytes(prefix[1..].try_into().unwrap());
                let (message, next) = message.split_at(usize::try_from(length).unwrap());
                responses.push(Response::decode(message).unwrap());
                rest = next;
            }
            for (response, request) in responses.iter().zip(&requests) {
                assert_eq!(response.host, "tidegate");
                assert_eq!(response.asked.as_ref(), Some(request));
            }
            assert(responses);
        });
    }
}

fn file_name(response: &Response) -> String {
    let files = &response.files.as_ref().expect("a file").files;
    assert_eq!(files.len(), 1);
    Name::decode(&files[0][..]).unwrap().name
}

#[test]
fn services_are_listed() {
    ask(&[Question::Services("*".to_owned())], |responses| {
        let services = responses[0].services.as_ref().expect("a list");
        let names = services.services.iter().map(|it| &it.name[..]);
        assert_eq!(
            names.collect::<Vec<_>>(),
            [
                "envoy.service.ratelimit.v3.RateLimitService",
                "grpc.health.v1.Health",
                "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection",
            ]
        );
    });
}

#[test]
fn files_are_found_by_name_and_by_symbol() {
    let questions = [
        Question::Symbol("envoy.service.ratelimit.v3.RateLimitService".to_owned()),
        Question::File("google/protobuf/struct.proto".to_owned()),
        Question::Symbol("grpc.health.v1.Health.Check".to_owned()),
    ];
    ask(&questions, |responses| {
        let names = responses.iter().map(file_name).collect::<Vec<_>>();
        let expected = [
            "envoy/service/ratelimit/v3/rls.proto",
            "google/protobuf/struct.proto",
            "grpc/health/v1/health.proto",
        ];
        assert_eq!(names, expected);
    });
}

#[test]
fn what_is_not_there_is_not_found() {
    let questions = [
        Question::Symbol("a.b.C".to_owned()),
        Question::File("a.proto".to_owned()),
        Question::Extensions("a.b.C".to_owned()),
    ];
    ask(&questions, |responses| {
        let codes = responses
            .iter()
            .map(|it| it.error.as_ref().map(|it| it.code));
        assert_eq!(codes.collect::<Vec<_>>(), [Some(5); 3]);
    });
}
