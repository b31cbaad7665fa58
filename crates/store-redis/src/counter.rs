//! One counter between us and the scripts: the numbers they take, the state they tell, and what the core makes
//! of it.

mod account;
mod numbers;
mod sparse;
mod state;

pub(crate) use account::{Account, bend};
pub(crate) use numbers::{
    Numbers, PeriodAfter, charge_stamp, drawn, lendings, loaned, numbers, numbers_of_one,
    period_after, refunded,
};
pub(crate) use state::{Told, time};
