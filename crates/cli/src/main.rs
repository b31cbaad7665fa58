//! The tidegate executable.
fn main() {}
