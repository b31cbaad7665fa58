//! The scripts, put together from the files in `scripts/`.
//!
//! A header gives the time, a file for each algorithm gives its functions, a driver calls them. Only the header
//! differs between the product and tests that move the time themselves.

use std::sync::OnceLock;

use tidegate_algorithms::{Meter, Quota};

use crate::client::{Joinable, Script};

/// What the scripts are called to do with a counter depends on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bucket,
    FixedWindow,
    IntervalBucket,
    SlidingCounter,
    SlidingLog,
    SubWindows,
}

/// Where the time of a decision comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// Redis' own clock.
    Server,
    /// The last argument.
    #[cfg(feature = "test-util")]
    Virtual,
    /// Redis' own clock; and each decision is written down under its last argument.
    #[cfg(feature = "test-util")]
    Race,
}

/// How many calls a script answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    One,
    /// One for each key.
    Several,
}

/// All scripts under one header.
#[derive(Debug)]
pub(crate) struct Scripts {
    header: String,
    one: [Joinable; Kind::ALL.len()],
    refund: [Script; Kind::ALL.len()],
    draw: [Script; Kind::ALL.len()],
    give_back: [Script; Kind::ALL.len()],
    /// By the set of algorithms in a request, so that Redis sets up no more than it needs.
    many: [OnceLock<Script>; 1 << Kind::ALL.len()],
    pub(crate) reset: Script,
    pub(crate) now: Script,
    pub(crate) list: Script,
}

const SOFT_PERIOD: &str = include_str!("../scripts/soft_period.lua");
const COUNT: &str = include_str!("../scripts/count.lua");
const WEIGHT: &str = include_str!("../scripts/weight.lua");
const ONE: &str = include_str!("../scripts/one.lua");
const BUCKET_ONE: &str = include_str!("../scripts/bucket_one.lua");
const FIXED_WINDOW_ONE: &str = include_str!("../scripts/fixed_window_one.lua");
const JOINED: &str = include_str!("../scripts/joined.lua");
const MANY: &str = include_str!("../scripts/many.lua");
const DRAW: &str = include_str!("../scripts/lend/draw.lua");
const GIVE_BACK: &str = include_str!("../scripts/lend/give_back.lua");
const NOTE: &str = include_str!("../scripts/lend/note.lua");
const REFUND: &str = include_str!("../scripts/refund/driver.lua");
const REFUND_GIVEN_BACK: &str = include_str!("../scripts/refund/charge_given_back.lua");

// === impl Kind ===

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Bucket,
        Self::FixedWindow,
        Self::IntervalBucket,
        Self::SlidingCounter,
        Self::SlidingLog,
        Self::SubWindows,
    ];

    pub(crate) const fn of(quota: &Quota) -> Self {
        match quota.meter() {
            Meter::TokenBucket(_) | Meter::LeakyBucket(_) => Self::Bucket,
            Meter::FixedWindow(_) => Self::FixedWindow,
            Meter::IntervalBucket(_) => Self::IntervalBucket,
            Meter::SlidingCounter(_) => Self::SlidingCounter,
            Meter::SlidingLog(_) => Self::SlidingLog,
            Meter::SubWindows(_) => Self::SubWindows,
        }
    }

    /// Its number, as the scripts know it.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Bucket => 0,
            Self::FixedWindow => 1,
            Self::IntervalBucket => 2,
            Self::SlidingCounter => 3,
            Self::SlidingLog => 4,
            Self::SubWindows => 5,
        }
    }

    /// Its functions: `open`, `weigh`, `write` and, maybe, `tell`.
    const fn body(self) -> &'static str {
        match self {
            Self::Bucket => include_str!("../scripts/bucket.lua"),
            Self::FixedWindow => include_str!("../scripts/fixed_window.lua"),
            Self::IntervalBucket => include_str!("../scripts/interval_bucket.lua"),
            Self::SlidingCounter => include_str!("../scripts/sliding_counter.lua"),
            Self::SlidingLog => include_str!("../scripts/sliding_log.lua"),
            Self::SubWindows => include_str!("../scripts/sub_windows.lua"),
        }
    }

    const fn refund(self) -> &'static str {
        match self {
            Self::Bucket => include_str!("../scripts/refund/bucket.lua"),
            Self::FixedWindow => include_str!("../scripts/refund/fixed_window.lua"),
            Self::IntervalBucket => include_str!("../scripts/refund/interval_bucket.lua"),
            Self::SlidingCounter => include_str!("../scripts/refund/sliding_counter.lua"),
            Self::SlidingLog => include_str!("../scripts/refund/sliding_log.lua"),
            Self::SubWindows => include_str!("../scripts/refund/sub_windows.lua"),
        }
    }

    /// What refunds one charge, before its functions and after them.
    const fn refund_charge(self) -> [&'static str; 3] {
        let [before, give_back] = self.give_back();
        match self {
            Self::Bucket => [
                NOTE,
                include_str!("../scripts/refund/charge_bucket.lua"),
                "",
            ],
            Self::IntervalBucket => [
                "",
                include_str!("../scripts/refund/charge_interval.lua"),
                "",
            ],
            Self::FixedWindow | Self::SlidingCounter | Self::SlidingLog | Self::SubWindows => {
                [before, give_back, REFUND_GIVEN_BACK]
            }
        }
    }

    /// What has its functions charge more than is asked for, before and after them.
    const fn lend(self) -> [&'static str; 2] {
        match self {
            Self::Bucket => [NOTE, include_str!("../scripts/lend/bucket.lua")],
            _ => [include_str!("../scripts/lend/count.lua"), ""],
        }
    }

    /// What gives back permits of a loan, before its functions and after them.
    const fn give_back(self) -> [&'static str; 2] {
        match self {
            Self::Bucket => [NOTE, include_str!("../scripts/lend/back_bucket.lua")],
            Self::FixedWindow | Self::IntervalBucket => {
                ["", include_str!("../scripts/lend/back_window.lua")]
            }
            Self::SlidingCounter => ["", include_str!("../scripts/lend/back_counter.lua")],
            Self::SlidingLog => ["", include_str!("../scripts/lend/back_log.lua")],
            Self::SubWindows => ["", include_str!("../scripts/lend/back_sub_windows.lua")],
        }
    }

    /// Its functions and what they need, with something before them.
    fn functions(self, before: &str) -> String {
        let numbers = format!("local NUMBERS = {}\n", self.format());
        let [count, weight] = self.shared();
        [&numbers, SOFT_PERIOD, count, weight, before, self.body()].concat()
    }

    /// What its functions need besides.
    const fn shared(self) -> [&'static str; 2] {
        match self {
            Self::Bucket => ["", ""],
            Self::FixedWindow | Self::IntervalBucket | Self::SlidingLog => [COUNT, ""],
            Self::SlidingCounter | Self::SubWindows => [COUNT, WEIGHT],
        }
    }

    /// How many numbers it takes.
    const fn numbers(self) -> usize {
        match self {
            Self::Bucket => 13,
            Self::FixedWindow | Self::SlidingCounter => 6,
            Self::IntervalBucket => 7,
            Self::SlidingLog | Self::SubWindows => 8,
        }
    }

    /// The same as Lua's `struct` spells it.
    fn format(self) -> String {
        format!("'<{}'", "d".repeat(self.numbers()))
    }
}

// === impl Header ===

impl Header {
    fn text(self, calls: Calls) -> String {
        let text = match self {
            Self::Server => include_str!("../scripts/header.lua"),
            #[cfg(feature = "test-util")]
            Self::Virtual => include_str!("../scripts/header_virtual.lua"),
            #[cfg(feature = "test-util")]
            Self::Race => include_str!("../scripts/header_race.lua"),
        };
        let spare = match (self, calls) {
            (Self::Server, Calls::One | Calls::Several) => "0",
            // Each call brings an argument of its own.
            #[cfg(feature = "test-util")]
            (_, Calls::One) => "1",
            #[cfg(feature = "test-util")]
            (_, Calls::Several) => "#KEYS",
        };
        format!("local spare = {spare}\n{text}")
    }
}

// === impl Scripts ===

impl Scripts {
    pub(crate) fn new(header: Header) -> Self {
        let one = Kind::ALL.map(|kind| joinable(header, kind));
        let header = header.text(Calls::One);
        let plain = |body: &str| Script::new([&header, body].concat());
        Self {
            one,
            refund: Kind::ALL.map(|kind| {
                let [before, charge, adapter] = kind.refund_charge();
                let drivers = [kind.refund(), charge, adapter, REFUND];
                single(&header, kind, before, &drivers)
            }),
            draw: Kind::ALL.map(|kind| {
                let [before, after] = kind.lend();
                single(&header, kind, before, &[after, DRAW])
            }),
            give_back: Kind::ALL.map(|kind| {
                let [before, after] = kind.give_back();
                single(&header, kind, before, &[kind.refund(), after, GIVE_BACK])
            }),
            many: [const { OnceLock::new() }; 1 << Kind::ALL.len()],
            reset: plain(include_str!("../scripts/reset.lua")),
            now: plain(include_str!("../scripts/now.lua")),
            list: plain(include_str!("../scripts/list.lua")),
            header,
        }
    }

    /// Decides on one limit.
    pub(crate) fn one(&self, kind: Kind) -> &Joinable {
        &self.one[usize::from(kind.number())]
    }

    /// Gives back to one counter.
    pub(crate) fn refund(&self, kind: Kind) -> &Script {
        &self.refund[usize::from(kind.number())]
    }

    /// Draws permits of one counter.
    pub(crate) fn draw(&self, kind: Kind) -> &Script {
        &self.draw[usize::from(kind.number())]
    }

    /// Gives back permits of a loan.
    pub(crate) fn give_back(&self, kind: Kind) -> &Script {
        &self.give_back[usize::from(kind.number())]
    }

    /// Decides on several limits of these algorithms.
    pub(crate) fn many(&self, kinds: impl Iterator<Item = Kind>) -> &Script {
        let set = kinds.fold(0_usize, |set, kind| set | 1 << kind.number());
        self.many[set].get_or_init(|| several(&self.header, set))
    }
}

/// A script for one algorithm: its functions, with something before them, and what calls them.
fn single(header: &str, kind: Kind, before: &str, drivers: &[&str]) -> Script {
    let functions = [header, &kind.functions(before)].concat();
    Script::new(functions + &drivers.concat())
}

/// The script that decides on one limit, and the one that decides on several by the same text: as the body of
/// the script, for a call of a function costs something, and as that of a function.
fn joinable(header: Header, kind: Kind) -> Joinable {
    // The most common ones have a flat text, for most calls of a bucket and of a fixed window. It comes before the
    // functions, because to make them costs a lone call as much as to decide.
    let first = match kind {
        Kind::Bucket => BUCKET_ONE,
        Kind::FixedWindow => FIXED_WINDOW_ONE,
        _ => "",
    };
    let functions = kind.functions("");
    let alone = [
        &header.text(Calls::One),
        "local key, numbers = KEYS[1], ARGV[1]\n",
        first,
        &functions,
        ONE,
    ];
    let joined = [
        &header.text(Calls::Several),
        &functions,
        "local function decide(key, numbers)\n",
        first,
        ONE,
        "end\n",
        JOINED,
    ];
    Joinable::new(Script::new(alone.concat()), Script::new(joined.concat()))
}

/// The script for a set of algorithms.
fn several(header: &str, set: usize) -> Script {
    let mut text = [
        header,
        SOFT_PERIOD,
        COUNT,
        WEIGHT,
        "local algorithms = {}\n",
    ]
    .concat();
    for kind in Kind::ALL {
        let (number, numbers) = (kind.number(), kind.format());
        if set & (1 << number) != 0 {
            let entry = format!(
                "algorithms[{number}] = {{open = open, weigh = weigh, write = write, tell = tell, \
                 numbers = {numbers}}}\n"
            );
            text.extend(["do\n", kind.body(), &entry, "end\n"]);
        }
    }
    text.push_str(MANY);
    Script::new(text)
}
