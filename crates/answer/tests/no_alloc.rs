//! The headers of the default dialect allocate nothing: they are told on every call of Envoy's.

use allocation_counter::measure;
use tidegate_answer::{Headers, headers};
use tidegate_limiter::{Descriptor, Entry, Limiter, LimiterConfig};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_store::{EmbeddedStore, StoreConfig};

#[test]
fn the_default_dialect_allocates_nothing() {
    let yaml =
        "{domain: test, descriptors: [{key: a, rate_limit: {unit: year, requests_per_unit: 1}}]}";
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: yaml.into(),
    };
    let rules = compile(&[source], &CompileOptions::default())
        .unwrap()
        .rules;
    let store = EmbeddedStore::new(StoreConfig::default());
    let limiter = Limiter::new(store, rules, LimiterConfig::default());
    let entries = [Entry {
        key: "a",
        value: "b",
    }];
    let descriptors = [Descriptor::new(&entries)];
    for (is_allowed, n_headers) in [(true, 2), (false, 4)] {
        let verdict = limiter.check_now("test", &descriptors, 1).unwrap();
        assert_eq!(verdict.is_allowed(), is_allowed);
        let otherwise = Headers::default();
        let mut told = 0;
        let allocated = measure(|| headers(&verdict, &otherwise, |_, _| told += 1));
        assert_eq!((told, allocated.count_total), (n_headers, 0));
    }
}
