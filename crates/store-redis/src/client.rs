//! Speaks to Redis: what waits at one moment goes out as one write.
