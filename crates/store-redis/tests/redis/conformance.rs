//! The store passes the suite that every store passes, on one server, in joined
//! decisions too, through Sentinel and over a Cluster.

mod single {
    use crate::subject::Single;

    tidegate_store::conformance!(Single, that lends);
}

mod in_company {
    use crate::subject::InCompany;

    tidegate_store::conformance!(in one test: InCompany);
}

mod sentinel {
    use crate::subject::Sentinel;

    tidegate_store::conformance!(in one test: Sentinel, that lends);
}

mod cluster {
    use crate::subject::Cluster;

    tidegate_store::conformance!(in one test: Cluster, that lends);
}
