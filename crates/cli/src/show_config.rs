//! `tidegate config`: the settings in force.

use std::process::ExitCode;

use crate::args::{ConfigArgs, ConfigFormat, Schema};
use crate::config;
use crate::failure::Failure;
use crate::terminal;

/// Prints the settings, or the schema of what is asked for.
pub(crate) fn run(args: &ConfigArgs) -> Result<ExitCode, Failure> {
    let text = match args.schema {
        Some(Schema::Config) => pretty(&config::config_schema(&config::defaults())),
        Some(Schema::Rules) => config::RULES_SCHEMA.to_owned(),
        None => effective(args)?,
    };
    terminal::print(&text);
    Ok(ExitCode::SUCCESS)
}

fn effective(args: &ConfigArgs) -> Result<String, Failure> {
    let loaded = config::load(&args.settings)?;
    Ok(match args.format {
        ConfigFormat::Yaml => {
            let notes = loaded.notes().map(|note| format!("# {note}\n"));
            let text = config::effective_yaml(&loaded.known);
            notes.chain([text]).collect()
        }
        ConfigFormat::Json => pretty(&config::effective_json(&loaded.known)),
    })
}

fn pretty(json: &serde_json::Value) -> String {
    // A tree of JSON always has a text.
    let text = serde_json::to_string_pretty(json).unwrap_or_default();
    format!("{text}\n")
}
