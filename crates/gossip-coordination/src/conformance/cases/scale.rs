//! As many shards as a run may begin with.

use std::collections::BTreeSet;

use gossip_contracts::coordination::ManifestValidationError;

use super::prelude::*;
use crate::conformance::world::Manifest;
use crate::error::RegisterShardsError;
use crate::run::ShardFilter;

/// A run with as many shards as the backend takes at once.
fn large<H: Harness>() -> (World<H>, u64) {
    let max = H::caps().max_initial_shards;
    let mut w = World::<H>::open(&Limits::default());
    w.audited = false;
    w.begin(max as u64);
    (w, max as u64)
}

pub(crate) fn as_many_shards_as_the_backend_allows<H: Harness>() {
    let max = H::caps().max_initial_shards;
    let w = &mut World::<H>::open(&Limits::default());
    w.create_run().unwrap();
    let (manifest, op) = (Manifest::of(0..max as u64 + 1), w.op());
    let rows = manifest.rows();
    let fault = ManifestValidationError::TooManyShards { count: max + 1, max };
    assert_eq!(w.register(&rows, op), Err(RegisterShardsError::ManifestInvalid(fault)));
    assert_eq!(w.register(&rows[..max], op), Ok(Executed(())));
    assert_eq!(w.register(&rows[..max], op), Ok(Replayed(())));
    assert_eq!(w.run_record().root_shards.len(), max);
    w.reopen();
}

pub(crate) fn a_listing_shows_all_of_many_shards_in_order<H: Harness>() {
    let (w, max) = &mut large::<H>();
    let listed = w.list(ShardFilter::all()).unwrap();
    assert!(listed.iter().map(|shard| shard.shard).eq((0..*max).map(id)));
    assert_eq!(w.progress().unwrap().active, *max);
}

pub(crate) fn claims_among_many_shards_are_distinct<H: Harness>() {
    let (w, max) = &mut large::<H>();
    let claims = (*max).min(H::CLAIMS_AMONG_MANY);
    let mut claimed = BTreeSet::new();
    for turn in 0..claims {
        let acquired = w.claim(turn % 16).unwrap();
        assert!(claimed.insert(acquired.lease.shard()), "a shard was claimed twice");
    }
    let available = w.list(ShardFilter::available()).unwrap();
    assert_eq!(available.len() as u64, *max - claims);
    assert!(available.iter().all(|shard| !claimed.contains(&shard.shard)));
}

/// What expired among many is found, whichever it is.
pub(crate) fn a_claim_finds_the_one_expired_shard_among_many<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    w.audited = false;
    let shards = 500.min(H::caps().max_initial_shards as u64);
    w.begin(shards);
    let leases: Vec<_> = (0..shards).map(|_| w.claim(1).unwrap().lease).collect();
    w.tick(LEASE / 2);
    let lost = leases[leases.len() / 3];
    for lease in leases.iter().filter(|lease| lease.key() != lost.key()) {
        w.renew(lease).unwrap();
    }
    assert!(w.claim(2).is_err());
    w.expire(&lost);
    assert_eq!(w.claim(2).unwrap().lease.shard(), lost.shard());
    assert!(w.claim(2).is_err());
}
