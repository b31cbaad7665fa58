//! Settings: from flags, environment and file to one [`Config`], or to everything that is wrong with them.
//!
//! Flags have the last word, then the environment, then the file. [`RawConfig`] is what was written,
//! [`Config`] what it means; nothing after this module looks at a flag or a variable again.

mod effective;
mod environment;
mod idle;
mod raw;
mod reader;
mod reference;
mod schema;
mod sections;
mod value;

use std::path::{Path, PathBuf};

use tidegate_observe::TraceConfig;
use tidegate_rules::Report;
use tidegate_rules::document::{self, Findings};
use tracing::warn;

use crate::args::SettingArgs;
use crate::failure::Failure;
use crate::{reload, rules_files};
use environment::Environment;
use idle::Idle;
use raw::{Origin, RawConfig};
use reader::Reader;
use reference::Unsupported;

pub(crate) use effective::{json as effective_json, yaml as effective_yaml};
pub(crate) use environment::author;
pub(crate) use raw::{Page, Written};
pub(crate) use reader::{Known, changed};
pub(crate) use reference::StandIn;
pub(crate) use schema::config as config_schema;
pub(crate) use sections::{
    ApiKeyFiles, BuiltInRules, Config, DenialTemplate, Identity, Listener, PushedPlace, Regions,
    Rules, RulesFiles, Standby, Store, Tls, TokenFiles, TokenKeyPlace,
};
pub(crate) use value::{Address, Count, Engine, RedisUrl, without_login, word_of};

/// The settings, and what else there is to say about them.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// What they mean.
    pub(crate) config: Config,
    /// The config file, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// Every setting with its value and who set it.
    pub(crate) known: Vec<Known>,
    /// How to trace, if at all.
    pub(crate) traces: Option<TraceConfig>,
    /// Whether we stand in for envoyproxy/ratelimit.
    pub(crate) stand_in: StandIn,
    /// Variables of the reference that do nothing here.
    pub(crate) unsupported: Vec<Unsupported>,
    /// Settings that were written and do nothing.
    pub(crate) idle: Vec<Idle>,
    /// Odd things in the settings, which are in force all the same.
    pub(crate) warnings: Report,
}

/// The format of rules as a JSON schema.
pub(crate) const RULES_SCHEMA: &str = include_str!("../../../deploy/schema/rules.schema.json");

/// Where a config file is looked for if none is named.
const PLACES: [&str; 2] = ["tidegate.yaml", "/etc/tidegate/tidegate.yaml"];

/// The numbers of the sources that findings refer to.
const FILE: usize = 0;
const ENVIRONMENT: usize = 1;
const FLAGS: usize = 2;

/// Reads all settings.
pub(crate) fn load(args: &SettingArgs) -> Result<Loaded, Failure> {
    let environment = Environment::read(ENVIRONMENT, std::env::vars_os());
    let file = find_file(args.config.as_deref().or(environment.config_file()));
    let bytes = file.as_deref().map(read_file).transpose()?;
    resolve(args, environment, file, bytes.as_deref())
}

fn resolve(
    args: &SettingArgs,
    environment: Environment,
    file: Option<PathBuf>,
    bytes: Option<&[u8]>,
) -> Result<Loaded, Failure> {
    let mut findings = Findings::default();
    let name = file
        .as_deref()
        .map_or_else(String::new, |path| path.display().to_string());
    let bytes = bytes.unwrap_or_default();
    findings.add_source(&name, bytes);
    let mut page = Page::new(FLAGS);
    let mut raw = RawConfig {
        file: document::parse(FILE, bytes, &mut findings),
        flags: args.written(&mut page),
        environment: environment.own,
        state_folder: environment.state_folder.map(|(_, folder)| folder),
        ..RawConfig::default()
    };
    environment.reference.translate(&mut raw);
    environment.page.publish("environment", &mut findings);
    page.publish("command line", &mut findings);
    let mut reader = Reader::new(&raw, findings);
    let config = Config::read(&mut reader.root());
    let (mut findings, known) = reader.finish();
    environment.reference.refuse(&config, &known, &mut findings);
    if findings.has_errors() {
        return Err(Failure::BadConfig(findings.into_report()));
    }
    let otel = |name: &str| environment.otel.get(name).cloned();
    let traces = config.observing.traces.resolve(otel);
    let unsupported = environment.reference.unsupported(&known);
    let idle = idle::find(&config, &known);
    Ok(Loaded {
        config,
        file,
        known,
        traces: traces.map_err(Failure::BadVariables)?,
        stand_in: environment.reference.stand_in(),
        unsupported,
        idle,
        warnings: findings.into_report(),
    })
}

// === impl Loaded ===

impl Loaded {
    /// Whether anybody set a setting.
    pub(crate) fn is_said(&self, path: &str) -> bool {
        let origin = reader::origin_of(&self.known, path);
        !matches!(origin, None | Some(Origin::Default | Origin::Assumed(_)))
    }

    /// Logs what was written and does nothing.
    pub(crate) fn warn(&self) {
        if !self.warnings.is_empty() {
            let below = reload::below(&self.warnings);
            warn!("odd settings{below}");
        }
        for note in self.notes() {
            warn!("{note}");
        }
    }

    /// What was written and does nothing, why, and what to do instead.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let unsupported = self
            .unsupported
            .iter()
            .map(|Unsupported { names, reason }| {
                let names = names.join(", ");
                let (because, instead) = (reason.because(), reason.instead());
                format!("not supported: {names}: {because}; {instead}")
            });
        unsupported.chain(self.idle.iter().map(Idle::note))
    }

    /// A line for what was typed just now and does nothing. What is in a file or the environment is meant for
    /// servers, and they say it themselves.
    pub(crate) fn typed_in_vain(&self) -> String {
        let typed = self.idle.iter().filter_map(Idle::of_flags);
        let lines: Vec<String> = typed.map(|it| format!("note: {}\n", it.note())).collect();
        lines.concat()
    }
}

/// All settings as they are where nobody sets them.
pub(crate) fn defaults() -> Vec<Known> {
    let raw = RawConfig::default();
    let mut reader = Reader::new(&raw, Findings::default());
    Config::read(&mut reader.root());
    reader.finish().1
}

fn find_file(named: Option<&Path>) -> Option<PathBuf> {
    named.map(Path::to_owned).or_else(|| {
        let mut places = PLACES.iter().map(PathBuf::from);
        places.find(|place| place.exists())
    })
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    rules_files::read_bytes(path).map_err(|reason| Failure::NoConfig {
        path: path.to_owned(),
        reason,
    })
}
