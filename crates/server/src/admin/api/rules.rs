//! The rules in force, with what was counted for each.

use serde::Serialize;
use tidegate_limiter::RuleSet;
use tidegate_observe::{Observatory, RuleCounts};
use tidegate_rules::Domain;

use crate::admin::fault::Fault;
use crate::admin::query::Query;
use crate::admin::reply::{self, Reply};
use crate::admin::view::RuleView;

/// A page of rules.
#[derive(Debug, Serialize)]
struct RulesView<'a> {
    rules: Vec<CountedRule<'a>>,
    total: usize,
    /// The `offset` of the next page; `null` on the last.
    next: Option<usize>,
}

#[derive(Debug, Serialize)]
struct CountedRule<'a> {
    #[serde(flatten)]
    rule: RuleView<'a>,
    counts: CountsView,
}

/// What became of the requests that a rule applied to.
#[derive(Debug, Serialize)]
struct CountsView {
    allowed: u64,
    near: u64,
    over: u64,
    shadowed: u64,
    refused: u64,
    hits: u64,
}

/// A page of the rules of one domain, or of all.
pub(in crate::admin) fn rules(
    rules: &RuleSet,
    observatory: &Observatory,
    mut query: Query<'_>,
) -> Result<Reply, Fault> {
    let page = query.take_page()?;
    let only = query.take("domain");
    query.finish()?;
    let is_asked = |domain: &&Domain| only.as_deref().is_none_or(|only| domain.name() == only);
    let of_domain = |domain| Domain::rules(domain).map(move |rule| (domain.name(), rule));
    let all = || rules.domains().filter(is_asked).flat_map(of_domain);
    let total = all().count();
    let shown = all().skip(page.offset).take(page.limit);
    Ok(reply::json(&RulesView {
        rules: shown
            .map(|(domain, rule)| CountedRule {
                rule: RuleView::new(domain, rule),
                counts: observatory.rule(domain, rule.path()).into(),
            })
            .collect(),
        total,
        next: page.next(total),
    }))
}

// === impl CountsView ===

impl From<RuleCounts> for CountsView {
    fn from(counts: RuleCounts) -> Self {
        Self {
            allowed: counts.allowed,
            near: counts.near,
            over: counts.over,
            shadowed: counts.shadowed,
            refused: counts.refused,
            hits: counts.hits,
        }
    }
}
