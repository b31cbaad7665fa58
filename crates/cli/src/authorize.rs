//! The descriptors of `/v1/authorize` beside the rules that they are to meet.

use std::sync::{Mutex, PoisonError};

use tidegate_identify::Recipe;
use tidegate_rules::{Domain, RuleSet};
use tidegate_server::{AuthorizeConfig, AuthorizeDomain};
use tracing::warn;

use crate::config::{Address, Config};

/// Warns of domains that proxies can ask and that limit none of their requests.
#[derive(Debug)]
pub(crate) struct UnmetRules {
    /// `None` if nobody can ask.
    authorize: Option<AuthorizeConfig>,
    /// The last warning; it is repeated when a reload changes it.
    last: Mutex<Option<String>>,
}

/// Domains that a log line names.
const MAX_NAMES: usize = 8;

// === impl UnmetRules ===

impl UnmetRules {
    pub(crate) fn of(config: &Config) -> Self {
        let is_served = config.listeners.http.address != Address::Off;
        Self {
            authorize: is_served.then(|| config.authorize.clone()),
            last: Mutex::default(),
        }
    }

    /// Logs which of the domains that proxies can ask have no rule for any request, because the descriptors that are made of
    /// requests have other keys, unless that is known.
    pub(crate) fn warn_of(&self, rules: &RuleSet) {
        let warning = self.authorize.as_ref().and_then(|it| warning(it, rules));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != warning {
            if let Some(warning) = &warning {
                warn!("{warning}");
            }
            *last = warning;
        }
    }
}

fn warning(authorize: &AuthorizeConfig, rules: &RuleSet) -> Option<String> {
    let asked = match &authorize.domain {
        AuthorizeDomain::Fixed(domain) => Some(domain),
        AuthorizeDomain::OfQuery { otherwise } => otherwise.as_ref(),
    };
    let is_asked = |domain: &&Domain| asked.is_none_or(|asked| asked == domain.name());
    let recipes = authorize.descriptors.list();
    let is_met = |domain: &&Domain| {
        let keys = |recipe: &Recipe| domain.has_rule_for(recipe.0.iter().map(|it| it.key.as_str()));
        recipes.iter().any(keys)
    };
    let unmet = rules.domains().filter(is_asked).filter(|it| !is_met(it));
    let unmet: Vec<String> = unmet
        .map(|it| format!("`{}`", it.name()))
        .take(MAX_NAMES)
        .collect();
    if unmet.is_empty() {
        return None;
    }
    let s = if unmet.len() == 1 { "" } else { "s" };
    let made: Vec<String> = recipes.iter().map(in_words).collect();
    Some(format!(
        "if a proxy such as nginx asks /v1/authorize, its requests are not limited: no rule of domain{s} {} can be met by the descriptors of \
         /v1/authorize ({}); set authorize.descriptors to the keys of the rules. Callers over gRPC, /json and /v1/check, such as Envoy, \
         bring descriptors of their own",
        unmet.join(", "),
        made.join(", ")
    ))
}

fn in_words(recipe: &Recipe) -> String {
    let keys: Vec<String> = recipe.0.iter().map(|it| format!("`{}`", it.key)).collect();
    keys.join(" + ")
}
