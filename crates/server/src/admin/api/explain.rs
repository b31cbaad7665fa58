//! Which limits apply to a request, and why.

use serde::{Deserialize, Serialize};
use tidegate_limiter::{Descriptor, Entry, KeyError, Limiter, Origin, Ruling, Status, Store};
use tidegate_rules::{Candidate, Color, Domain, Ending, Fate, Rank, Step, explain as words};

use crate::admin::AdminHooks;
use crate::admin::body::OwnedEntry;
use crate::admin::fault::Fault;
use crate::admin::reply::{self, Reply};
use crate::admin::view::{EntryView, LimitView, RuleView};

/// A request to explain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct Question {
    domain: String,
    descriptors: Vec<OwnedDescriptor>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnedDescriptor {
    entries: Vec<OwnedEntry>,
}

#[derive(Debug, Serialize)]
struct ExplainView<'a> {
    domain: &'a str,
    descriptors: Vec<DescriptorView<'a>>,
}

#[derive(Debug, Serialize)]
struct DescriptorView<'a> {
    entries: Vec<EntryView<'a>>,
    /// The rule that applies.
    rule: Option<RuleView<'a>>,
    /// Its limits, those that another descriptor replaces included.
    limits: Vec<AppliedView<'a>>,
    /// How the walk through the rules ended.
    ending: &'static str,
    steps: Vec<StepView<'a>>,
    /// All of it in words.
    text: String,
}

#[derive(Debug, Serialize)]
struct AppliedView<'a> {
    #[serde(flatten)]
    limit: LimitView<'a>,
    /// Whether another limit of the request puts it out of force.
    replaced: bool,
    /// How nodes share it, in words, a line each; nothing if there is nobody to share it with.
    sharing: Vec<String>,
}

#[derive(Debug, Serialize)]
struct StepView<'a> {
    key: &'a str,
    value: &'a str,
    candidates: Vec<CandidateView<'a>>,
    /// How many more candidates do not match.
    not_shown: usize,
    /// How many other keys the level knows.
    other_keys: usize,
}

#[derive(Debug, Serialize)]
struct CandidateView<'a> {
    label: &'a str,
    by: &'static str,
    fate: &'static str,
}

/// How many descriptors are explained at once, as many as a request over HTTP may have.
const MOST_DESCRIPTORS: usize = 32;

/// How many candidates that do not match are shown at a level: some have thousands.
const MOST_MISSES: usize = 8;

/// Explains a request.
pub(in crate::admin) fn explain<S: Store>(
    limiter: &Limiter<S>,
    hooks: &dyn AdminHooks,
    question: &Question,
) -> Result<Reply, Fault> {
    if question.descriptors.len() > MOST_DESCRIPTORS {
        return Err(Fault::BadField(
            "at most 32 descriptors are explained at once",
        ));
    }
    let entries: Vec<Vec<Entry<'_>>> = question
        .descriptors
        .iter()
        .map(|descriptor| OwnedEntry::borrow(&descriptor.entries))
        .collect();
    let descriptors: Vec<_> = entries.iter().map(|it| Descriptor::new(it)).collect();
    let verdict = limiter.applying(&question.domain, &descriptors)?;
    let no_domain = || KeyError::NoSuchDomain {
        domain: question.domain.clone(),
    };
    let domain = verdict
        .rules()
        .domain(&question.domain)
        .ok_or_else(no_domain)?;
    let described = verdict.statuses().zip(&entries);
    Ok(reply::json(&ExplainView {
        domain: domain.name(),
        descriptors: described
            .map(|(status, entries)| DescriptorView::new(domain, &status, entries, hooks))
            .collect(),
    }))
}

// === impl DescriptorView ===

impl<'a> DescriptorView<'a> {
    fn new(
        domain: &'a Domain,
        status: &Status<'a>,
        entries: &[Entry<'a>],
        hooks: &dyn AdminHooks,
    ) -> Self {
        let trace = domain.trace(entries);
        let (rule, ending) = match trace.ending {
            Ending::Rule(rule) => (Some(RuleView::new(domain.name(), rule)), "rule"),
            Ending::NoLimitHere => (None, "no_limit_here"),
            Ending::NoMatch => (None, "no_match"),
            Ending::TooDeep => (None, "too_deep"),
            Ending::Empty => (None, "empty"),
        };
        Self {
            entries: EntryView::all(entries.iter().copied()),
            rule,
            limits: applied(status, hooks),
            ending,
            steps: trace.steps.iter().map(StepView::from).collect(),
            text: words::render(domain, entries, &|limit| hooks.sharing(limit), Color::Never),
        }
    }
}

fn applied<'a>(status: &Status<'a>, hooks: &dyn AdminHooks) -> Vec<AppliedView<'a>> {
    let mut limits = Vec::new();
    for limit in status.limits() {
        if let Origin::Rule { limit: of_rule, .. } = limit.origin() {
            limits.push(AppliedView {
                limit: of_rule.into(),
                replaced: limit.ruling() == Ruling::Replaced,
                sharing: hooks.sharing(of_rule),
            });
        }
    }
    limits
}

// === impl StepView ===

impl<'a> From<&Step<'a>> for StepView<'a> {
    fn from(step: &Step<'a>) -> Self {
        let mut n_misses = 0;
        let is_shown = |candidate: &&Candidate<'_>| {
            n_misses += usize::from(candidate.fate == Fate::NoMatch);
            candidate.fate != Fate::NoMatch || n_misses <= MOST_MISSES
        };
        let shown = step.candidates.iter().filter(is_shown);
        let candidates: Vec<_> = shown.map(CandidateView::from).collect();
        Self {
            key: step.entry.key,
            value: step.entry.value,
            not_shown: step.candidates.len() - candidates.len(),
            candidates,
            other_keys: step.other_keys,
        }
    }
}

// === impl CandidateView ===

impl<'a> From<&Candidate<'a>> for CandidateView<'a> {
    fn from(candidate: &Candidate<'a>) -> Self {
        Self {
            label: candidate.label,
            by: match candidate.rank {
                Rank::Exact => "exact_value",
                Rank::Pattern => "pattern",
                Rank::BareKey => "bare_key",
            },
            fate: match candidate.fate {
                Fate::Chosen => "chosen",
                Fate::NoMatch => "no_match",
                Fate::Outranked => "outranked",
            },
        }
    }
}
