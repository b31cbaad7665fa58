//! From drafts that hold together to the compiled set.

use tidegate_algorithms::{Algorithm, Allowance, Quota, Refill, Rounding};

use crate::draft::{DraftDomain, DraftLimit, DraftRule, DraftTerms, Matcher, Sharing};
use crate::duration;
use crate::findings::Findings;
use crate::identity::{PathDigest, Shape};
use crate::limit::{Limit, Terms};
use crate::network::Networks;
use crate::pattern::{Pattern, Wildcard};
use crate::pattern_index::PatternIndex;
use crate::rule::{Location, MetricDetail, Rule, RuleId};
use crate::rule_set::{Branch, Domain, Node, NodeId, RuleSet};

/// Lays out one domain.
struct Builder<'a> {
    domain: Domain,
    /// For the names of the files.
    findings: &'a Findings,
}

/// What a rule takes over from the levels above it.
#[derive(Clone)]
struct Above {
    node: NodeId,
    depth: usize,
    path: String,
    digest: PathDigest,
    counted_values: Vec<usize>,
    counted_addresses: Vec<usize>,
    metric_values: Vec<usize>,
}

/// Compiles drafts without faults.
pub(crate) fn build(drafts: Vec<DraftDomain>, findings: &Findings) -> RuleSet {
    let mut domains = Vec::with_capacity(drafts.len());
    let mut first_rule = 0;
    for draft in drafts {
        let domain = build_domain(draft, first_rule, findings);
        first_rule += domain.rules.len();
        domains.push(domain);
    }
    RuleSet::new(domains)
}

fn build_domain(draft: DraftDomain, first_rule: usize, findings: &Findings) -> Domain {
    let digest = PathDigest::of_domain(&draft.name.inner);
    let domain = Domain {
        name: draft.name.inner.into(),
        charging: draft.charging.map(|charging| charging.inner),
        first_rule,
        rules: Vec::new(),
        nodes: vec![Node::default()],
    };
    let mut builder = Builder { domain, findings };
    let root = Above {
        node: 0,
        depth: 0,
        path: String::new(),
        digest,
        counted_values: Vec::new(),
        counted_addresses: Vec::new(),
        metric_values: Vec::new(),
    };
    for rule in draft.rules {
        builder.add(rule, &root);
    }
    for node in &mut builder.domain.nodes {
        for branch in node.branches.values_mut() {
            branch.index = PatternIndex::new(&branch.patterns);
        }
    }
    builder.domain
}

// === impl Builder ===

impl Builder<'_> {
    fn add(&mut self, draft: DraftRule, above: &Above) {
        let label = draft.label();
        let node = self.domain.nodes.len();
        let here = above.step(&draft, node, &label);
        self.domain.nodes.push(Node {
            label: label.into(),
            ..Node::default()
        });
        self.attach(&draft, above.node, node);
        if !draft.limits.is_empty() || draft.children.is_empty() {
            let rule = self.rule(&draft, &here);
            self.domain.nodes[node].rule = Some(self.domain.rules.len());
            self.domain.rules.push(rule);
        }
        for child in draft.children {
            self.add(child, &here);
        }
    }

    /// Makes `node` reachable from its parent.
    fn attach(&mut self, draft: &DraftRule, parent: NodeId, node: NodeId) {
        let branches = &mut self.domain.nodes[parent].branches;
        let branch: &mut Branch = branches.entry(&draft.key);
        match &draft.matcher {
            Matcher::Any => branch.default = Some(node),
            Matcher::Values(values) => {
                for value in values.iter().map(|value| value.inner.as_str()) {
                    if Wildcard::is_pattern(value) {
                        let pattern = Pattern::Wildcard(Wildcard::new(value));
                        branch.patterns.push((pattern, node));
                    } else {
                        branch.exact.insert(value, node);
                    }
                }
            }
            Matcher::Networks(networks) => {
                let networks: Vec<_> = networks.iter().map(|network| network.inner).collect();
                let pattern = Pattern::Networks(Networks::new(&networks));
                branch.patterns.push((pattern, node));
            }
        }
    }

    fn rule(&self, draft: &DraftRule, here: &Above) -> Rule {
        let number = self.domain.first_rule + self.domain.rules.len();
        let metric = match (draft.detailed_metric, here.metric_values.as_slice()) {
            (true, _) => MetricDetail::All,
            (false, []) => MetricDetail::Path,
            (false, values) => MetricDetail::Values(values.into()),
        };
        Rule {
            // The number of rules is bounded far below 2^32 before anything is built.
            id: RuleId(u32::try_from(number).unwrap_or(u32::MAX)),
            identity: here.digest.rule(),
            path: here.path.as_str().into(),
            limits: limits(&draft.limits, here.digest),
            mode: draft.mode,
            counted_values: here.counted_values.as_slice().into(),
            counted_addresses: here.counted_addresses.as_slice().into(),
            metric,
            metadata: draft.metadata.clone(),
            headers: draft.headers,
            location: Location {
                file: self.findings.name_of(draft.span.file),
                line: draft.span.line,
                column: draft.span.column,
            },
        }
    }
}

// === impl Above ===

impl Above {
    fn step(&self, draft: &DraftRule, node: NodeId, label: &str) -> Self {
        let mut here = self.clone();
        here.node = node;
        here.depth += 1;
        here.digest = self.digest.child(draft);
        if !here.path.is_empty() {
            here.path.push_str(" > ");
        }
        here.path.push_str(label);
        if draft.matcher.takes_several() && draft.sharing == Sharing::Apart {
            here.counted_values.push(self.depth);
            if matches!(draft.matcher, Matcher::Networks(_)) {
                here.counted_addresses.push(self.depth);
            }
        }
        if draft.value_to_metric && draft.sharing == Sharing::Apart {
            here.metric_values.push(self.depth);
        }
        here
    }
}

fn limits(drafts: &[DraftLimit], path: PathDigest) -> Box<[Limit]> {
    let mut shapes: Vec<Shape> = Vec::with_capacity(drafts.len());
    let with_terms = drafts
        .iter()
        .filter_map(|draft| Some((draft, draft.terms.as_ref()?)));
    with_terms
        .map(|(draft, terms)| {
            let shape = Shape::of(terms);
            let place = shapes.iter().filter(|other| **other == shape).count();
            let id = path.limit(&shape, place);
            shapes.push(shape);
            limit(draft, terms, id)
        })
        .collect()
}

fn limit(draft: &DraftLimit, terms: &DraftTerms, id: u128) -> Limit {
    let (terms, description) = match terms {
        DraftTerms::Unlimited => (Terms::Unlimited, "unlimited".to_owned()),
        DraftTerms::Quota(quota) => (Terms::Quota(quota.clone()), describe(quota)),
    };
    Limit {
        id,
        terms,
        name: draft.name.as_ref().map(|name| name.inner.as_str().into()),
        replaces: draft
            .replaces
            .iter()
            .map(|name| name.inner.as_str().into())
            .collect(),
        over_limit: draft.over_limit,
        consistency: draft.consistency,
        on_failure: draft.on_failure,
        on_full: draft.on_full,
        count_status: draft.count_status,
        announcement: draft.announcement,
        description: description.into(),
    }
}

/// The numbers in words: `100 per minute, token_bucket, burst 20`.
fn describe(quota: &Quota) -> String {
    let mut parts = vec![format!(
        "{} per {}",
        quota.limit(),
        duration::per(quota.window())
    )];
    parts.push(quota.algorithm().name().to_owned());
    match quota.algorithm() {
        Algorithm::FixedWindow => {}
        Algorithm::TokenBucket { burst, refill } => {
            parts.extend(burst.map(|burst| format!("burst {burst}")));
            parts.extend((refill == Refill::Interval).then(|| "refilled at intervals".to_owned()));
        }
        Algorithm::LeakyBucket { queue } => {
            parts.extend(queue.map(|queue| format!("queue {queue}")));
        }
        Algorithm::SlidingLog { log_refused } => {
            parts.extend(log_refused.then(|| "refused requests logged".to_owned()));
        }
        Algorithm::SlidingCounter {
            sub_windows,
            rounding,
        } => {
            parts.extend((sub_windows > 1).then(|| format!("{sub_windows} sub-windows")));
            parts.extend((rounding == Rounding::Up).then(|| "rounded up".to_owned()));
        }
    }
    match quota.allowance() {
        Allowance::Hard => {}
        Allowance::Soft {
            over,
            only_for: None,
        } => parts.push(format!("soft {}%", over.0)),
        Allowance::Soft {
            over,
            only_for: Some(span),
        } => {
            parts.push(format!("soft {}% for {}", over.0, duration::format(span)));
        }
        Allowance::Elastic { over } => parts.push(format!("elastic {}%", over.0)),
        Allowance::Postpaid { max_debt: None } => parts.push("postpaid".to_owned()),
        Allowance::Postpaid {
            max_debt: Some(debt),
        } => parts.push(format!("postpaid, max debt {debt}")),
    }
    parts.join(", ")
}
