//! Numbers, in bounds.

use serde_json::{Value as Json, json};
use tidegate_algorithms::Percent;

use super::{Mismatch, Shown, Value};

/// A whole number of at least `LEAST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count<const LEAST: u32>(pub(crate) u32);

/// A share of the whole, in millionths: an integer, because no float may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ratio(u32);

/// A share of the whole, in hundredths, that is not nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percentage(pub(crate) Percent);

// === impl Count ===

impl<const LEAST: u32> Count<LEAST> {
    /// The number, for what counts in words of the machine.
    pub(crate) fn get(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const LEAST: u32> Value for Count<LEAST> {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let digits = text.replace('_', "");
        match digits.parse() {
            Ok(count) if count >= LEAST => Ok(Self(count)),
            // No upper bound here: some settings have a lower one of their own.
            Ok(_) => Err(Mismatch::new(
                "a whole number",
                format!("write at least {LEAST}"),
            )),
            Err(_) => {
                let hint = format!("write a whole number from {LEAST} to {}", u32::MAX);
                Err(Mismatch::new("a whole number", hint))
            }
        }
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.0))
    }

    fn schema() -> Json {
        json!({ "type": "integer", "minimum": LEAST, "maximum": u32::MAX })
    }
}

// === impl Ratio ===

impl Ratio {
    pub(crate) const WHOLE: Self = Self(1_000_000);

    pub(crate) const NONE: Self = Self(0);

    /// 0.8, as envoyproxy/ratelimit has it.
    pub(crate) const NEAR: Self = Self(800_000);

    /// The share in millionths.
    pub(crate) const fn millionths(self) -> u32 {
        self.0
    }

    /// The share as a float, for whoever draws lots with it.
    pub(crate) fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE.0)
    }
}

impl Value for Ratio {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let is_short = !fraction.is_empty() && fraction.len() <= 6;
        let millionths = (is_number(whole) && is_number(fraction) && is_short)
            .then(|| format!("{whole}{fraction:0<6}").parse::<u32>().ok())
            .flatten();
        match millionths {
            Some(millionths) if millionths <= Self::WHOLE.0 => Ok(Self(millionths)),
            _ => Err(Mismatch::new(
                "a share",
                "write a number from 0 to 1, such as `0.8`",
            )),
        }
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.as_f64()))
    }

    fn schema() -> Json {
        json!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

// === impl Percentage ===

impl Value for Percentage {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let digits = text.strip_suffix('%').map(str::parse);
        match digits {
            Some(Ok(percent @ 1..=100)) => Ok(Self(Percent(percent))),
            _ => Err(Mismatch::new(
                "a percentage",
                "write a whole number from 1% to 100%, such as `25%`",
            )),
        }
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(format!("{}%", self.0.0)))
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^[1-9][0-9]*%$" })
    }
}
