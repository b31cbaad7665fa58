//! `grpc.reflection`: what is served here, told to clients that bring no description along.

mod descriptors;

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use tidegate_limiter::Store;

use super::answer::Answer;
use super::call::Office;
use super::memory::AnswerBytes;
use super::message::{Messages, framed};
use super::status::{Code, Status};
use crate::wire::protobuf::{Malformed, Reader, Writer};
use crate::within::within;
use descriptors::Descriptors;

/// What a client wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question<'a> {
    Nothing,
    File {
        name: &'a str,
    },
    Symbol {
        name: &'a str,
    },
    /// There is no extension in any file.
    Extension,
    ExtensionNumbers {
        of: &'a str,
    },
    Services,
}

/// Answers questions until the client has no more, or the server ends.
pub(super) async fn answer<S: Store>(
    mut messages: Messages<'_>,
    respond: &mut SendResponse<AnswerBytes>,
    office: &Office<S>,
) {
    let Some(mut answer) = Answer::begin(respond) else {
        return;
    };
    let mut drain = office.drain.clone();
    let end = loop {
        let asked = {
            let next = pin!(messages.next());
            tokio::select! {
                asked = within(office.config.call_timeout, next) => asked,
                () = drain.begun() => break Status::draining(),
            }
        };
        let told = match asked {
            Some(Ok(Some(message))) => tell(&message),
            Some(Ok(None)) => break Status::new(Code::Ok, ""),
            Some(Err(status)) => break status,
            None => break Status::late(),
        };
        match told {
            Ok(told) => {
                // It waits here until the client has room for it.
                let mut held = office.memory.of_call();
                if let Err(status) = held.grow(told.len()) {
                    break status;
                }
                messages.release();
                if answer.send(told, office).await.is_err() {
                    return;
                }
            }
            Err(malformed) => break malformed.into(),
        }
    };
    answer.end(&end);
}

/// The answer to one question.
fn tell(message: &[u8]) -> Result<Bytes, Malformed> {
    let (host, question) = read(message)?;
    let told = framed(&mut BytesMut::new(), |out| {
        let mut out = Writer(out);
        out.bytes(1, host);
        out.bytes(2, message);
        question.write_answer(&mut out);
    });
    Ok(told)
}

/// `ServerReflectionRequest`.
fn read(message: &[u8]) -> Result<(&str, Question<'_>), Malformed> {
    let (mut host, mut question) = ("", Question::Nothing);
    let mut fields = Reader::new(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => host = value.text(field)?,
            3 => {
                question = Question::File {
                    name: value.text(field)?,
                }
            }
            4 => {
                question = Question::Symbol {
                    name: value.text(field)?,
                }
            }
            5 => question = Question::Extension,
            6 => {
                question = Question::ExtensionNumbers {
                    of: value.text(field)?,
                }
            }
            7 => question = Question::Services,
            _ => {}
        }
    }
    Ok((host, question))
}

// === impl Question ===

impl Question<'_> {
    fn write_answer(self, out: &mut Writer<'_>) {
        let descriptors = Descriptors::served();
        match self {
            Self::File { name } => write_file(descriptors.file(name), out),
            Self::Symbol { name } => write_file(descriptors.file_of(name), out),
            Self::ExtensionNumbers { of } if descriptors.file_of(of).is_some() => {
                out.message(5, |it| it.bytes(1, of));
            }
            Self::Services => out.message(6, |list| {
                for service in descriptors.services() {
                    list.message(1, |it| it.bytes(1, service));
                }
            }),
            Self::Extension | Self::ExtensionNumbers { .. } => write_file(None, out),
            Self::Nothing => write_error(Code::InvalidArgument, "nothing was asked", out),
        }
    }
}

fn write_file(file: Option<&[u8]>, out: &mut Writer<'_>) {
    match file {
        Some(file) => out.message(4, |it| it.bytes(1, file)),
        None => write_error(Code::NotFound, "there is nothing of that name here", out),
    }
}

fn write_error(code: Code, message: &str, out: &mut Writer<'_>) {
    out.message(7, |it| {
        it.uint(1, code.number());
        it.bytes(2, message);
    });
}
