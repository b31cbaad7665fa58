//! Any text as the URI of a request: a path that is in its normal form stays as it is.

#![no_main]

use std::borrow::Cow;
use std::num::NonZeroU8;

use libfuzzer_sys::fuzz_target;
use tidegate_identify::{
    HeaderText, Headers, Identities, Recipe, Recipes, Request, Source, Values,
};

struct NoHeaders;

impl Headers for NoHeaders {
    fn value(&self, _: &str) -> Option<HeaderText<'_>> {
        None
    }
}

fuzz_target!(|uri: &str| {
    let recipes = Recipes::new(vec![Recipe::new([
        ("path", Source::Path),
        ("segment", Source::PathSegment(NonZeroU8::MIN)),
        ("host", Source::Host),
        ("query", Source::Query("a".to_owned())),
    ])])
    .expect("recipes");
    let path = |uri: &str| {
        let request = Request {
            method: None,
            uri: Some(uri),
            host: Some(uri),
            client: None,
            headers: &NoHeaders,
            identities: Identities::none(),
            claims: None,
            certificate: None,
            route: None,
        };
        let _ = recipes.read(&request, &mut Values::default());
        let value = Source::Path
            .all_of(&request)
            .expect("no header has two meanings");
        value.into_iter().next().map(Cow::into_owned)
    };
    if let Some(normal) = path(uri) {
        assert_eq!(path(&normal).as_ref(), Some(&normal));
    }
});
