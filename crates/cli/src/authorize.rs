//! The descriptors of `/v1/authorize` beside the rules that they are to meet.

use tidegate_identify::Recipe;
use tidegate_rules::{Domain, RuleSet};
use tidegate_server::AuthorizeDomain;
use tracing::warn;

use crate::config::{Address, Config};

/// Domains that a log line names.
const MAX_NAMES: usize = 8;

/// Logs which of the domains that proxies can ask have no rule for any request, because the descriptors that are made of requests
/// have other keys.
pub(crate) fn warn_of_unmet_rules(config: &Config, rules: &RuleSet) {
    if config.listeners.http.address == Address::Off {
        return;
    }
    let asked = match &config.authorize.domain {
        AuthorizeDomain::Fixed(domain) => Some(domain),
        AuthorizeDomain::OfQuery { otherwise } => otherwise.as_ref(),
    };
    let is_asked = |domain: &&Domain| asked.is_none_or(|asked| asked == domain.name());
    let recipes = config.authorize.descriptors.list();
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
        return;
    }
    let s = if unmet.len() == 1 { "" } else { "s" };
    let made: Vec<String> = recipes.iter().map(in_words).collect();
    warn!(
        "no rule of domain{s} {} can be met by the descriptors of /v1/authorize ({}): requests that a proxy asks about there are not \
         limited; set authorize.descriptors to the keys of the rules",
        unmet.join(", "),
        made.join(", ")
    );
}

fn in_words(recipe: &Recipe) -> String {
    let keys: Vec<String> = recipe.0.iter().map(|it| format!("`{}`", it.key)).collect();
    keys.join(" + ")
}
