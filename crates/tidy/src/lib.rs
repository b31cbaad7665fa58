//! The house rules that neither the compiler nor clippy holds.
//!
//! Each module is one family of rules: it takes text or parsed sources and gives [`Fault`]s. The
//! rules are tried on small bad inputs beside them, and on the whole tree in `tests/house.rs`,
//! where the exceptions stand, each with its reason. Nothing of this is in the product.

pub mod arrows;
pub mod dependencies;
mod fault;
pub mod language;
pub mod links;
pub mod metadata;
pub mod size;
mod source;
pub mod text;
pub mod tokens;
mod tree;

pub use fault::{Exception, Fault, excuse};
pub use source::{Role, Source, TypeName};
pub use tree::Tree;
