//! Leases in a simulated world: nodes with clocks of their own, a common store, and the way between.

mod company;
mod gone;
mod lender;
mod lending;
mod never_over;
mod redis_store;
mod refusals;
mod reloads;
mod stage;
mod stalls;
mod time;
mod together;
mod usable;
mod wire;
mod world;
