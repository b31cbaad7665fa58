//! Limits that a client escapes by choosing another key.
//!
//! A counter for each value of a header is no limit at all for a client that sends another value each time. Something verified in the same
//! key does not help: each value is a new counter beside it too. What helps is another limit of the same request, whose key the client
//! cannot choose.

use tidegate_identify::{Ingredient, Recipe, Recipes, Source};
use tidegate_rules::{Domain, Rule, RuleSet, Terms};
use tidegate_server::AuthorizeDomain;

use crate::config::{Config, Loaded};

/// A rule whose key a client chooses.
#[derive(Debug)]
pub(super) struct ChosenKey<'r> {
    pub(super) rule: &'r Rule,
    pub(super) message: String,
}

/// What to do about it.
pub(super) const HINT: &str = "add a limit of its own for the same requests, by client_address or by something verified (claim:NAME, api_key, certificate) alone; beside this key it would not help";

/// The requests of one kind, and the domain that judges them.
struct Asked<'c> {
    domain: &'c str,
    recipes: &'c Recipes,
}

/// Finds the rules whose keys clients choose, in whole or in part, if no other limit holds the same requests, as far as the settings say where descriptors come from.
pub(super) fn find<'r>(loaded: &Loaded, rules: &'r RuleSet) -> Vec<ChosenKey<'r>> {
    let mut found: Vec<ChosenKey<'r>> = Vec::new();
    for asked in asked(loaded) {
        let Some(domain) = rules.domain(asked.domain) else {
            continue;
        };
        for (rule, recipe) in matching(domain, asked.recipes) {
            let counted = counted(rule, recipe);
            let is_known = found.iter().any(|one| one.rule.id() == rule.id());
            let chosen = counted.iter().find(|entry| is_chosen(&entry.from));
            if let Some(entry) = chosen
                && !is_known
                && !is_held_otherwise(domain, asked.recipes)
            {
                let message = format!(
                    "a client chooses `{}` ({}) itself, and gets another counter with each value",
                    entry.key, entry.from
                );
                found.push(ChosenKey { rule, message });
            }
        }
    }
    found
}

/// All kinds of requests whose descriptors the settings describe.
fn asked(loaded: &Loaded) -> Vec<Asked<'_>> {
    let Config {
        gateway, authorize, ..
    } = &loaded.config;
    let of_routes = gateway.routes.iter().map(|route| Asked {
        domain: &gateway.domain,
        recipes: route.descriptors.as_ref().unwrap_or(&gateway.descriptors),
    });
    let of_messages = gateway.routes.iter().filter_map(|route| {
        let limits = route.websocket.as_ref()?;
        Some(Asked {
            domain: &gateway.domain,
            recipes: limits.descriptors.as_ref()?,
        })
    });
    // Without a domain, nobody knows which rules proxies ask.
    let domain = match &authorize.domain {
        AuthorizeDomain::Fixed(domain) => Some(domain),
        AuthorizeDomain::OfQuery { otherwise } => otherwise.as_ref(),
    };
    let of_proxies = domain.map(|domain| Asked {
        domain,
        recipes: &authorize.descriptors,
    });
    of_routes.chain(of_messages).chain(of_proxies).collect()
}

/// The rules that count, each with the recipes whose descriptors can end there.
fn matching<'d, 'r>(
    domain: &'d Domain,
    recipes: &'r Recipes,
) -> impl Iterator<Item = (&'d Rule, &'r Recipe)> {
    let counts = |rule: &&Rule| {
        let mut limits = rule.limits().iter();
        limits.any(|limit| matches!(limit.terms(), Terms::Quota(_)))
    };
    domain.rules().filter(counts).flat_map(move |rule| {
        let ends_there = move |recipe: &&Recipe| {
            let keys = rule.path().split(" > ").map(key);
            keys.eq(recipe.0.iter().map(|entry| entry.key.as_str()))
        };
        recipes
            .list()
            .iter()
            .filter(ends_there)
            .map(move |recipe| (rule, recipe))
    })
}

/// The key of an entry of a rule's path, which is text for people.
fn key(entry: &str) -> &str {
    entry.split_once('=').map_or(entry, |(key, _)| key)
}

/// The entries whose values tell callers apart.
fn counted<'r>(rule: &Rule, Recipe(entries): &'r Recipe) -> Vec<&'r Ingredient> {
    let places = rule.counted_values().iter();
    places.filter_map(|at| entries.get(*at)).collect()
}

/// Whether the same requests have a limit whose key the client cannot choose, wherever they go.
fn is_held_otherwise(domain: &Domain, recipes: &Recipes) -> bool {
    matching(domain, recipes).any(|(rule, recipe)| {
        let counted = counted(rule, recipe);
        let is_constant = |entry: &&Ingredient| matches!(entry.from, Source::Constant(_));
        let n_constant = recipe.0.iter().filter(is_constant).count();
        // Entries that are neither counted nor constant only match some requests.
        let is_general = counted.iter().filter(|entry| !is_constant(entry)).count() + n_constant
            == recipe.0.len();
        is_general && !counted.iter().any(|entry| is_chosen(&entry.from))
    })
}

/// Whether a client can choose the value freely.
fn is_chosen(source: &Source) -> bool {
    source.is_chosen_by_client() || matches!(source, Source::Path | Source::PathSegment(_))
}
