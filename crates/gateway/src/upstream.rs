//! Upstreams: the servers behind the gateway, their connections and their health.
