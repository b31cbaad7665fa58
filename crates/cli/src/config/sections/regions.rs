//! Other places where the same limits are enforced, each with a Redis of its own.

use serde_json::{Map, Value as Json, json};
use tidegate_rules::document::{Code, Finding, Findings, Kind, Node, Pair};

use crate::config::reader::Section;
use crate::config::value::{Discretion, RedisUrl, Shown, Value as _};

/// The regions by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions(Vec<(String, RedisUrl)>);

/// More than there are regions in anybody's cloud.
const MOST: usize = 32;

const HINT: &str =
    "write the name and the Redis of each region, as in `eu: rediss://redis.eu:6379`";

// === impl Regions ===

impl Regions {
    /// The name and the Redis of each region but that of `home`, so that all regions can have the same list.
    pub(crate) fn others(&self, home: &RedisUrl) -> impl Iterator<Item = &(String, RedisUrl)> {
        let is_home = |url: &RedisUrl| url.config.deployment == home.config.deployment;
        self.0.iter().filter(move |(_, url)| !is_home(url))
    }

    pub(super) fn read(root: &mut Section<'_, '_>) -> Self {
        root.tree(
            "regions",
            "eventual: the name and the Redis of each region that shares the limits; this one may be among them",
            json!({ "type": "object", "additionalProperties": RedisUrl::schema() }),
            Self::default(),
            Self::show,
            Self::parse,
        )
    }

    fn show(&self) -> Shown {
        let (mut shown, mut is_masked) = (Map::new(), false);
        for (name, url) in &self.0 {
            let url = match url.show() {
                Shown::Plain(url) => url,
                Shown::Masked(url) => {
                    is_masked = true;
                    url
                }
                Shown::Secret | Shown::Unset => Json::Null,
            };
            shown.insert(name.clone(), url);
        }
        let shown = Json::Object(shown);
        if is_masked {
            Shown::Masked(shown)
        } else {
            Shown::Plain(shown)
        }
    }

    fn parse(node: &Node, findings: &mut Findings) -> Option<Self> {
        let Kind::Block(pairs) = &node.kind else {
            let message = format!("`regions` takes names with URLs, found {}", node.shape());
            findings.push(Finding::error(Code::WrongShape, node.span, message).hint(HINT));
            return None;
        };
        if pairs.len() > MOST {
            let message = format!("more than {MOST} regions");
            findings.push(Finding::error(Code::TooLarge, node.span, message));
            return None;
        }
        let regions: Vec<_> = pairs
            .iter()
            .filter_map(|pair| region(pair, findings))
            .collect();
        (regions.len() == pairs.len()).then_some(Self(regions))
    }
}

fn region(pair: &Pair, findings: &mut Findings) -> Option<(String, RedisUrl)> {
    let name = pair.key.as_text().unwrap_or_default().to_owned();
    let text = pair.value.as_text().unwrap_or_default();
    if Discretion::Open.about(text) == Discretion::Secret {
        findings.veil(pair.value.span);
    }
    match RedisUrl::parse(text) {
        Ok(url) => Some((name, url)),
        Err(mismatch) => {
            let message = format!("the region `{name}` needs {}", mismatch.expected);
            let finding = Finding::error(Code::BadValue, pair.value.span, message);
            findings.push(finding.hint(mismatch.hint));
            None
        }
    }
}
