//! The store passes the suite that every store passes, on one server, through Sentinel and over a Cluster.

mod single {
    use super::super::subject::Single;

    tidegate_store::conformance!(Single);
}
