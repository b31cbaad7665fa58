//! The compiled descriptions of `proto/`, searched as they lie: they are asked for by people, and short.

use std::iter;

use crate::wire::protobuf::{Reader, Value};

/// A `google.protobuf.FileDescriptorSet`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptors<'a>(&'a [u8]);

/// Where the parts of a description lie: the numbers of `descriptor.proto`.
mod field {
    /// Of all that has one.
    pub(super) const NAME: u32 = 1;
    /// Of the set.
    pub(super) const FILE: u32 = 1;
    /// Of a file.
    pub(super) const PACKAGE: u32 = 2;
    /// Of a file: messages, enums and services.
    pub(super) const OF_FILE: [u32; 3] = [4, 5, SERVICE];
    /// Of a file.
    pub(super) const SERVICE: u32 = 6;
    /// Fields or methods, and, of a message, messages and enums.
    pub(super) const INSIDE: [u32; 3] = [2, 3, 4];
}

// === impl Descriptors ===

impl Descriptors<'static> {
    /// Those of what is served here.
    pub(super) const fn served() -> Self {
        Self(include_bytes!("../../../../../proto/descriptors.bin"))
    }
}

impl<'a> Descriptors<'a> {
    /// The file of that name.
    pub(super) fn file(self, name: &str) -> Option<&'a [u8]> {
        self.files().find(|file| text(file, field::NAME) == name)
    }

    /// The file that declares a message, an enum, a service, or something inside them.
    pub(super) fn file_of(self, symbol: &str) -> Option<&'a [u8]> {
        self.files().find(|file| {
            let package = text(file, field::PACKAGE);
            let rest = symbol.strip_prefix(package);
            let path = rest.and_then(|rest| rest.strip_prefix('.'));
            path.is_some_and(|path| declares(file, &field::OF_FILE, path))
        })
    }

    /// The full names of all services.
    pub(super) fn services(self) -> impl Iterator<Item = String> {
        self.files().flat_map(|file| {
            let package = text(file, field::PACKAGE);
            let services = parts(file).filter(|(number, _)| *number == field::SERVICE);
            services.map(move |(_, service)| format!("{package}.{}", text(service, field::NAME)))
        })
    }

    fn files(self) -> impl Iterator<Item = &'a [u8]> {
        let files = parts(self.0).filter(|(number, _)| *number == field::FILE);
        files.map(|(_, file)| file)
    }
}

/// Whether one of these parts of a description has that path.
fn declares(description: &[u8], numbers: &[u32], path: &str) -> bool {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let mut named = parts(description)
        .filter(|(number, part)| numbers.contains(number) && text(part, field::NAME) == name);
    named.any(|(_, part)| rest.is_none_or(|rest| declares(part, &field::INSIDE, rest)))
}

/// All parts of a description that are messages or text, by number.
fn parts(description: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut fields = Reader::new(description);
    let fields = iter::from_fn(move || fields.next().ok().flatten());
    fields.filter_map(|(number, value)| match value {
        Value::Bytes(bytes) => Some((number, bytes)),
        _ => None,
    })
}

fn text(description: &[u8], number: u32) -> &str {
    let mut texts = parts(description).filter(|(its_number, _)| *its_number == number);
    let bytes = texts.next().map_or(&[][..], |(_, bytes)| bytes);
    str::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::method::Method;

    #[test]
    fn every_method_that_is_served_is_described() {
        let served = Descriptors::served();
        let services = served.services().collect::<Vec<_>>();
        for path in Method::paths() {
            let symbol = path.trim_start_matches('/').replace('/', ".");
            let (service, _) = symbol.rsplit_once('.').unwrap();
            assert!(services.iter().any(|it| it == service), "{service}");
            assert!(served.file_of(&symbol).is_some(), "{symbol}");
        }
        assert_eq!(services.len(), 4, "{services:?}");
    }

    #[test]
    fn files_bring_what_they_import() {
        const DEPENDENCY: u32 = 3;
        let served = Descriptors::served();
        for file in served.files() {
            for (_, import) in parts(file).filter(|(number, _)| *number == DEPENDENCY) {
                let import = str::from_utf8(import).unwrap();
                assert!(served.file(import).is_some(), "{import}");
            }
        }
    }

    #[test]
    fn symbols_are_found_where_they_are_declared() {
        let served = Descriptors::served();
        let check = |symbol, expected| {
            let file = served.file_of(symbol).map(|file| text(file, field::NAME));
            assert_eq!(file, expected, "{symbol}");
        };
        let rls = Some("envoy/service/ratelimit/v3/rls.proto");
        check("envoy.service.ratelimit.v3.RateLimitResponse", rls);
        check(
            "envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit",
            rls,
        );
        check("envoy.service.ratelimit.v3.RateLimitRequest.domain", rls);
        check(
            "google.protobuf.Struct",
            Some("google/protobuf/struct.proto"),
        );
        check("envoy.service.ratelimit.v3.Nothing", None);
        check("envoy.service.ratelimit.v3", None);
        check("", None);
    }
}
