//! Any text as the URI of a request: a path that is in its normal form stays as it is.

#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use tidegate_identify::{Headers, Recipe, Recipes, Request, Source};

struct NoHeaders;

impl Headers for NoHeaders {
    fn value(&self, _: &str) -> Option<Cow<'_, str>> {
        None
    }
}

fuzz_target!(|uri: &str| {
    let recipes = Recipes::new(vec![Recipe::new([
        ("path", Source::Path),
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
        };
        let mut values = recipes.values(&request);
        values.swap_remove(0).map(Cow::into_owned)
    };
    if let Some(normal) = path(uri) {
        assert_eq!(path(&normal).as_ref(), Some(&normal));
    }
});
