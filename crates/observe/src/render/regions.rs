//! The other regions that are told what is admitted here.

use tidegate_limiter::report::{RegionReport, StoreHealth};

use super::family::Family;
use super::page::Page;

const REACHED: Family = Family::gauge(
    "tidegate_region_reached",
    "1 while totals can be told to another region, 0 while its Redis fails and is not asked.",
);
const ERRORS: Family = Family::counter(
    "tidegate_region_call_errors_total",
    "Calls to another region that came to nothing.",
);

/// Adds all that is known of `regions`, which the operator named.
pub(super) fn add(page: &mut Page, regions: &[RegionReport]) {
    let mut series = page.family(&REACHED);
    for region in regions {
        let is_reached = region.health() == StoreHealth::Whole;
        series.add(&[("region", &*region.name)], u8::from(is_reached));
    }
    let mut series = page.family(&ERRORS);
    for region in regions {
        let errors: u64 = region.servers.iter().map(|it| it.errors.total()).sum();
        series.add(&[("region", &*region.name)], errors);
    }
}
