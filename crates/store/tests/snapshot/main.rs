//! Snapshots of the embedded store: it decides after a restart as if there had been none, and a
//! snapshot that is not as it was written is refused.

mod caps;
mod damage;
mod fixture;
mod meanwhile;
mod restarts;
mod shared;
mod support;
