//! `ShouldRateLimit`, field by field.

use crate::client::{Server, run};
use crate::wire::{Code, ask};

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 2, name: per-user }
";

#[test]
fn a_caller_is_admitted_up_to_the_limit() {
    run(async {
        let server = Server::new(RULES);
        let mut client = server.connect().await;
        let question = ask("api", &[("user", "7")]);
        for remaining in [1, 0] {
            let answer = client.ask(&question).await;
            assert_eq!(answer.overall_code(), Code::Ok);
            assert_eq!(answer.statuses[0].limit_remaining, remaining);
        }
        let answer = client.ask(&question).await;
        assert_eq!(answer.overall_code(), Code::OverLimit);
    });
}
