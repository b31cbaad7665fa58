//! What the algorithms promise, as properties over random quotas and histories.

mod agreement;
mod allowance;
mod answers;
mod history;
mod late_refunds;
mod postpaid;
mod promises;
mod reload;
mod totality;
