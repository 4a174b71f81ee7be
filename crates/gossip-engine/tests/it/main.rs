//! The engine from outside: built-in rules on generated examples, rule files with faults, scans of
//! arbitrary bytes, streams, and allocation.

mod builtin_rules;
mod checks;
mod contexts;
mod encodings;
mod findings;
mod gitleaks;
mod key_files;
mod places;
mod program_files;
mod redaction;
mod rule_files;
mod scanning;
mod support;
mod zero_alloc;

use gossip_testalloc::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();
