//! Buckets in memory, with the same contract as the real ones, for tests of callers.
