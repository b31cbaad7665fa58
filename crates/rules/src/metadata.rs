//! Free data that a rule hands to the proxy: what a protobuf `Struct` can say.

/// A value of `metadata`.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataValue {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number; protobuf has no other kind.
    Number(f64),
    /// Text.
    Text(Box<str>),
    /// Values in order.
    List(Box<[MetadataValue]>),
    /// Named values in the order of the file.
    Map(Box<[(Box<str>, MetadataValue)]>),
}
