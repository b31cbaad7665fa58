//! Measurements that need a process of their own, because what one leaves in the heap would count
//! for the next. The parent runs this program again and reads `name value` lines from it.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Command, Stdio};
use std::str::FromStr;

use crate::contender::{Contender, Counting};
use crate::growth::Order;
use crate::{flood, growth};

/// Figures by name.
pub type Figures = BTreeMap<String, f64>;

/// What to measure in a process of its own.
#[derive(Clone, Copy, Debug)]
pub enum Measurement {
    /// Memory while callers come, up to `keys`.
    Growth {
        /// Of whom.
        contender: Contender,
        /// Counting how.
        counting: Counting,
        /// How many callers in the end.
        keys: u64,
    },
    /// Memory of full logs of 500.
    Logs {
        /// How many.
        keys: u64,
        /// Filled in which order.
        order: Order,
    },
    /// Memory of 60 sub-windows, all in use.
    SubWindows {
        /// How many.
        keys: u64,
    },
    /// More callers than there is room for.
    Flood {
        /// How many.
        keys: u64,
    },
}

/// Prints figures for the parent.
pub fn answer(figures: &Figures) {
    for (name, value) in figures {
        println!("{name} {value}");
    }
}

// === impl Measurement ===

impl Measurement {
    /// Takes the measurement in this process.
    pub fn take(self) -> Result<Figures, Box<dyn Error>> {
        match self {
            Self::Growth {
                contender,
                counting,
                keys,
            } => Ok(growth::grow(contender, counting, keys)),
            Self::Logs { keys, order } => growth::logs(keys, order),
            Self::SubWindows { keys } => growth::sub_windows(keys),
            Self::Flood { keys } => flood::run(keys),
        }
    }

    /// Takes the measurement in a new process.
    pub fn spawn(self) -> Result<Figures, Box<dyn Error>> {
        let output = Command::new(std::env::current_exe()?)
            .arg("measure")
            .args(self.words())
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err(format!("{self:?} failed").into());
        }
        let text = String::from_utf8(output.stdout)?;
        text.lines().map(parse_figure).collect()
    }

    /// Parses what [`spawn`](Self::spawn) passed on.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["growth", contender, counting, keys] => Ok(Self::Growth {
                contender: contender.parse()?,
                counting: counting.parse()?,
                keys: number(keys)?,
            }),
            ["logs", keys, order] => Ok(Self::Logs {
                keys: number(keys)?,
                order: order.parse()?,
            }),
            ["sub-windows", keys] => Ok(Self::SubWindows {
                keys: number(keys)?,
            }),
            ["flood", keys] => Ok(Self::Flood {
                keys: number(keys)?,
            }),
            _ => Err(format!("no measurement {words:?}")),
        }
    }

    fn words(self) -> Vec<String> {
        match self {
            Self::Growth {
                contender,
                counting,
                keys,
            } => vec![
                "growth".to_owned(),
                contender.to_string(),
                format!("{counting:?}"),
                keys.to_string(),
            ],
            Self::Logs { keys, order } => {
                vec!["logs".to_owned(), keys.to_string(), format!("{order:?}")]
            }
            Self::SubWindows { keys } => vec!["sub-windows".to_owned(), keys.to_string()],
            Self::Flood { keys } => vec!["flood".to_owned(), keys.to_string()],
        }
    }
}

fn parse_figure(line: &str) -> Result<(String, f64), Box<dyn Error>> {
    let (name, value) = line
        .split_once(' ')
        .ok_or("a figure has a name and a value")?;
    Ok((name.to_owned(), f64::from_str(value)?))
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|error| format!("{word}: {error}"))
}
