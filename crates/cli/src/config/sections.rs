//! The settings: every name, what it is for and what it is where nobody sets it.

mod admin;
mod answers;
mod authorize;
mod gateway;
mod identity;
mod limits;
mod listeners;
mod observing;
mod regions;
mod rules;
mod sources;
mod store;

use tidegate_answer::Answers;
use tidegate_gateway::RouteConfig;
use tidegate_identify::MissingToken;
use tidegate_limiter::{Charging, LooksAtLimit};
use tidegate_rules::document::Code;
use tidegate_server::AuthorizeConfig;

use super::reader::Section;
use super::value::{Address, Count, Ratio, Words};
use crate::sharing::Sharing;
use admin::Admin;
use gateway::Gateway;
use limits::{Drain, Limits};
use listeners::Listeners;
use observing::Observing;

pub(crate) use gateway::DenialTemplate;
pub(crate) use identity::{ApiKeyFiles, Identity, TokenFiles, TokenKeyPlace};
pub(crate) use listeners::{Listener, Tls};
pub(crate) use regions::Regions;
pub(crate) use rules::{BuiltInRules, PushedPlace, Rules, RulesFiles};
pub(crate) use store::{Standby, Store};

/// The settings, understood.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Where requests and operators come in.
    pub(crate) listeners: Listeners,
    /// Where the rules are.
    pub(crate) rules: Rules,
    /// Where counters are kept.
    pub(crate) store: Store,
    /// Where else the same limits are enforced.
    pub(crate) regions: Regions,
    /// How a request with several limits is charged, where its domain does not say.
    pub(crate) charging: Charging,
    /// The answer to a look at a limit that is just used up, under `every_match`.
    pub(crate) looks_at_limit: LooksAtLimit,
    /// Whether refusals are only reported.
    pub(crate) shadow: bool,
    /// From which share of a limit on its use is near.
    pub(crate) near_ratio: Ratio,
    /// How answers look.
    pub(crate) answers: Answers,
    /// How `/v1/authorize` reads requests.
    pub(crate) authorize: AuthorizeConfig,
    /// How callers prove who they are.
    pub(crate) identity: Identity,
    /// The gateway; without routes there is none.
    pub(crate) gateway: Gateway,
    /// What is told about the work.
    pub(crate) observing: Observing,
    /// What clients are allowed.
    pub(crate) limits: Limits,
    /// How the end goes.
    pub(crate) drain: Drain,
    /// Who may change things.
    pub(crate) admin: Admin,
    /// How many threads answer; by default one for each core.
    pub(crate) threads: Option<Count<1>>,
}

// === impl Config ===

impl Config {
    /// Reads all settings.
    pub(crate) fn read(root: &mut Section<'_, '_>) -> Self {
        let gateway_is_wanted = gateway::is_wanted(root);
        let listeners = Listeners::read(
            root.block("listeners", "Where requests and operators come in"),
            gateway_is_wanted,
        );
        let mut rules = Rules::read(root.block_or("rules", "Where the rules are", "paths"));
        let store = Store::read(root.block_or(
            "store",
            "Where counters are kept, and how nodes share them",
            "engine",
        ));
        let regions = Regions::read(root);
        rules.sharing = Sharing::of(&store, &regions);
        rules.pushed = rules.pushed.map(|place| place.beside(&store));
        let mut config = Self {
            listeners,
            rules,
            store,
            regions,
            charging: charging(root),
            looks_at_limit: looks_at_limit(root),
            shadow: root.value(
                "shadow",
                "Count and report refusals, but let every request pass",
                false,
            ),
            near_ratio: root.value(
                "near_ratio",
                "From which share of a limit on its use is reported as near",
                Ratio::NEAR,
            ),
            answers: answers::read(root.block("answers", "What clients are told")),
            authorize: authorize::read(root),
            identity: Identity::read(root.block(
                "identity",
                "How callers prove who they are: tokens, API keys, labels of networks",
            )),
            gateway: Gateway::read(root.block(
                "gateway",
                "The gateway: routes to the servers behind it, and what becomes of requests",
            )),
            observing: Observing::read(
                root.block("observing", "What operators are told: log, metrics, traces"),
            ),
            limits: Limits::read(root.block("limits", "What clients are allowed")),
            drain: Drain::read(root.block("drain", "How the server stops")),
            admin: Admin::read(root.block("admin", "Who may change things while it runs")),
            threads: threads(root),
        };
        config.refuse_routes_without_tokens(root);
        sources::refuse_empty(&config, root);
        if config.has_gateway() {
            let domain = config.gateway.domain.clone();
            config.rules.built_in = BuiltInRules::Gateway { domain };
        }
        config
    }

    /// A route that demands tokens where none can be good would let everybody pass.
    fn refuse_routes_without_tokens(&self, root: &mut Section<'_, '_>) {
        let is_demanding = |route: &&RouteConfig| route.missing_token == Some(MissingToken::Deny);
        let route = self.gateway.routes.iter().find(is_demanding);
        // Tokens with faults are told already.
        let has_none = self.identity.tokens.is_none() && !root.has_faults();
        if let Some(route) = route.filter(|_| has_none) {
            let message = format!(
                "the route `{}` demands tokens, but no token is known",
                route.name
            );
            let hint = "name the keys of tokens in `identity.tokens`";
            root.fault("gateway.routes", Code::MissingField, message, hint);
        }
    }

    /// Whether there is a gateway.
    pub(crate) fn has_gateway(&self) -> bool {
        self.listeners.gateway.address != Address::Off && !self.gateway.routes.is_empty()
    }
}

/// More threads than any machine has cores.
const MOST_THREADS: u32 = 1_024;

fn threads(root: &mut Section<'_, '_>) -> Option<Count<1>> {
    let threads: Option<Count<1>> = root.optional(
        "threads",
        "How many threads answer; by default one for each core",
    );
    if threads.is_some_and(|Count(threads)| threads > MOST_THREADS) {
        let message = "that many threads only get in each other's way".to_owned();
        let hint = format!("write at most {MOST_THREADS}");
        root.fault("threads", Code::BadValue, message, &hint);
    }
    threads
}

fn charging(root: &mut Section<'_, '_>) -> Charging {
    root.value(
        "charging",
        "How a request with several limits is charged, where its domain does not say",
        Charging::AllOrNone,
    )
}

fn looks_at_limit(root: &mut Section<'_, '_>) -> LooksAtLimit {
    root.value(
        "looks_at_limit",
        "How fixed windows under `every_match` answer a look (cost 0) when exactly the limit is used",
        LooksAtLimit::Deny,
    )
}

// === impl Charging ===

impl Words for Charging {
    const EXPECTED: &'static str = "a way of charging";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("all_or_none", Self::AllOrNone),
        ("every_match", Self::EveryMatch),
    ];
}

// === impl LooksAtLimit ===

impl Words for LooksAtLimit {
    const EXPECTED: &'static str = "an answer to looks";
    const WORDS: &'static [(&'static str, Self)] = &[("deny", Self::Deny), ("allow", Self::Allow)];
}
