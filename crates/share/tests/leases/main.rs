//! Leases in a simulated world: nodes with clocks of their own, a common store, and the way between.

mod lender;
mod never_over;
mod time;
mod usable;
mod wire;
mod world;
