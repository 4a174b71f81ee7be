use proptest::prelude::*;

use super::*;

fn tenant(byte: u8) -> TenantId {
    TenantId::from_bytes([byte; 32])
}

/// Everything that has a key.
#[derive(Clone, Debug, PartialEq)]
enum Named {
    Total,
    TenantTotal(u8),
    Open(u8, u64),
    ListedRun(u8, u64),
    Record(u8, u64),
    Gate(u8, u64),
    Shard(u8, u64, u64),
    Owner(u8, u64, u64),
    Listed(u8, u64, Listed, u64),
    HeldBy(u8, u64, u64, u64),
    Waiting(u8, u64, u64),
    Idle(u8, u64, u64, u64),
}

impl Named {
    fn key(&self, keyspace: &Keyspace) -> Key {
        let run = |t: u8, r: u64| keyspace.run(tenant(t), RunId::from_raw(r));
        match *self {
            Self::Total => keyspace.shard_total(),
            Self::TenantTotal(t) => keyspace.tenant(tenant(t)).shard_total(),
            Self::Open(t, r) => run(t, r).open(),
            Self::ListedRun(t, r) => keyspace.tenant(tenant(t)).listed_run(RunId::from_raw(r)),
            Self::Record(t, r) => run(t, r).record(),
            Self::Gate(t, r) => run(t, r).gate(),
            Self::Shard(t, r, s) => run(t, r).shard(ShardId::from_raw(s)),
            Self::Owner(t, r, s) => run(t, r).owner(ShardId::from_raw(s)),
            Self::Listed(t, r, listed, s) => run(t, r).listed(listed, ShardId::from_raw(s)),
            Self::Waiting(t, r, w) => run(t, r).waiting(WorkerId::from_raw(w)),
            Self::Idle(t, r, at, w) => {
                run(t, r).idle(LogicalTime::from_raw(at), WorkerId::from_raw(w))
            }
            Self::HeldBy(t, r, w, s) => {
                run(t, r).held_by(WorkerId::from_raw(w), ShardId::from_raw(s))
            }
        }
    }

    fn of(&self) -> (Option<u8>, Option<u64>) {
        match *self {
            Self::Total => (None, None),
            Self::TenantTotal(t) | Self::ListedRun(t, _) => (Some(t), None),
            Self::Open(t, r)
            | Self::Record(t, r)
            | Self::Gate(t, r)
            | Self::Shard(t, r, _)
            | Self::Owner(t, r, _)
            | Self::Listed(t, r, ..)
            | Self::Waiting(t, r, _)
            | Self::Idle(t, r, ..)
            | Self::HeldBy(t, r, ..) => (Some(t), Some(r)),
        }
    }
}

/// Small ids, and those whose decimal or hex digits begin with one another.
fn id() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_u64, Just(0x10), Just(0x100), Just(1 << 63), Just(u64::MAX), any::<u64>()]
}

fn listed() -> impl Strategy<Value = Listed> {
    prop_oneof![
        Just(Listed::Free),
        Just(Listed::Held),
        Just(Listed::Done),
        Just(Listed::Split),
        Just(Listed::Parked),
    ]
}

fn named() -> impl Strategy<Value = Named> {
    let t = 0..3_u8;
    prop_oneof![
        Just(Named::Total),
        t.clone().prop_map(Named::TenantTotal),
        (t.clone(), id()).prop_map(|(t, r)| Named::Open(t, r)),
        (t.clone(), id()).prop_map(|(t, r)| Named::ListedRun(t, r)),
        (t.clone(), id()).prop_map(|(t, r)| Named::Record(t, r)),
        (t.clone(), id()).prop_map(|(t, r)| Named::Gate(t, r)),
        (t.clone(), id(), id()).prop_map(|(t, r, s)| Named::Shard(t, r, s)),
        (t.clone(), id(), id()).prop_map(|(t, r, s)| Named::Owner(t, r, s)),
        (t.clone(), id(), listed(), id()).prop_map(|(t, r, l, s)| Named::Listed(t, r, l, s)),
        (t.clone(), id(), id()).prop_map(|(t, r, w)| Named::Waiting(t, r, w)),
        (t.clone(), id(), id(), id()).prop_map(|(t, r, at, w)| Named::Idle(t, r, at, w)),
        (t, id(), id(), id()).prop_map(|(t, r, w, s)| Named::HeldBy(t, r, w, s)),
    ]
}

fn namespace() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c.]{1,3}", "[a-zA-Z0-9._-]{1,64}"]
}

proptest! {
    /// Y1.
    #[test]
    fn no_key_lies_in_the_range_of_another_namespace_tenant_or_run(
        names in (namespace(), namespace()), one in named(), t in 0..3_u8, r in id()
    ) {
        let (here, there) = (Keyspace::new(&names.0).unwrap(), Keyspace::new(&names.1).unwrap());
        let key = one.key(&here);
        prop_assert!(here.all().contains(key.as_bytes()));
        prop_assert_eq!(there.all().contains(key.as_bytes()), names.0 == names.1);

        let (of_tenant, of_run) = one.of();
        let is_open = matches!(one, Named::Open(..));
        let keys = here.tenant(tenant(t));
        let within = |range: KeyRange| range.contains(key.as_bytes());
        prop_assert_eq!(within(keys.all()), of_tenant == Some(t) && !is_open);
        prop_assert_eq!(within(keys.open_runs()), of_tenant == Some(t) && is_open);
        let is_of_a_run = of_tenant == Some(t) && of_run.is_some() && !is_open;
        prop_assert_eq!(within(keys.runs()), is_of_a_run);
        let run = here.run(tenant(t), RunId::from_raw(r));
        prop_assert_eq!(within(run.all()), is_of_a_run && of_run == Some(r));
    }

    /// Y2.
    #[test]
    fn equal_keys_name_the_same(one in named(), other in named()) {
        let keyspace = Keyspace::new("gossip").unwrap();
        prop_assert_eq!(one.key(&keyspace) == other.key(&keyspace), one == other);
    }

    /// A range from a time on has exactly who waits then.
    #[test]
    fn who_waits_is_in_order_of_until_when(until in id(), worker in id(), now in id()) {
        let run = Keyspace::new("gossip").unwrap().run(tenant(1), RunId::from_raw(1));
        let idle = run.idle(LogicalTime::from_raw(until), WorkerId::from_raw(worker));
        let waits = run.idle_at(LogicalTime::from_raw(now)).contains(idle.as_bytes());
        prop_assert_eq!(waits, now < until);
    }

    /// Parts of a list that lie side by side have every shard once, at its place.
    #[test]
    fn a_shard_is_in_the_part_of_a_list_that_has_its_place(
        s in id(), cut in 0..=PLACES, from in 0..PLACES, width in 0..=PLACES
    ) {
        let run = Keyspace::new("gossip").unwrap().run(tenant(1), RunId::from_raw(1));
        let (shard, place) = (ShardId::from_raw(s), place_of_shard(ShardId::from_raw(s)));
        let [free, held] =
            [Listed::Free, Listed::Held].map(|listed| run.listed(listed, shard).into_bytes());
        prop_assert!(run.free().contains(&free) && run.held().contains(&held));
        prop_assert_eq!(run.free_between(0, cut).contains(&free), place < cut);
        prop_assert_eq!(run.free_between(cut, PLACES).contains(&free), place >= cut);
        prop_assert_eq!(run.held_between(0, cut).contains(&held), place < cut);
        prop_assert_eq!(run.held_between(cut, PLACES).contains(&held), place >= cut);
        let found = run.free_part(from, width).iter().filter(|part| part.contains(&free)).count();
        let is_within = (place + PLACES - from) % PLACES < width;
        prop_assert_eq!(found, usize::from(is_within));
    }

    #[test]
    fn what_a_key_names_can_be_read_back(t in 0..3_u8, r in id(), s in id()) {
        let run = Keyspace::new("gossip").unwrap().run(tenant(t), RunId::from_raw(r));
        let shard = ShardId::from_raw(s);
        let lists = [Listed::Free, Listed::Held].map(|listed| run.listed(listed, shard));
        for key in lists.into_iter().chain([run.shard(shard)]) {
            prop_assert_eq!(id_at_end(key.as_bytes()), Some(s));
        }
        prop_assert_eq!(id_at_end(run.open().as_bytes()), Some(r));
        prop_assert_eq!(tenant_of_open_run(run.open().as_bytes()), Some(tenant(t)));
    }

    #[test]
    fn whatever_a_key_is_reading_it_does_not_panic(key in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = (id_at_end(&key), tenant_of_open_run(&key));
    }
}

#[test]
fn a_namespace_is_one_segment() {
    for bad in ["", "a/b", "/", "ü", "a b", "a\0", &"n".repeat(65)] {
        assert_eq!(Keyspace::new(bad), Err(InvalidNamespace), "{bad:?}");
    }
    for good in ["a", "gossip", "Prod.eu-1_x", &"n".repeat(64)] {
        assert!(Keyspace::new(good).is_ok(), "{good:?}");
    }
}

/// The layout is a format: what is stored must be found by the next version.
#[test]
fn the_layout_is_pinned() {
    let keyspace = Keyspace::new("gossip").unwrap();
    let run = keyspace.run(tenant(0xab), RunId::from_raw(16));
    let (shard, worker) = (ShardId::from_raw(3), WorkerId::from_raw(7));
    let t = "ab".repeat(32);
    let root = format!("gossip/tenant/{t}/run/0000000000000010");
    for (key, expected) in [
        (keyspace.shard_total(), "gossip/shards".to_owned()),
        (keyspace.tenant(tenant(0xab)).shard_total(), format!("gossip/tenant/{t}/shards")),
        (
            keyspace.tenant(tenant(0xab)).listed_run(RunId::from_raw(16)),
            format!("gossip/tenant/{t}/runs/0000000000000010"),
        ),
        (run.open(), format!("gossip/open/{t}/0000000000000010")),
        (run.record(), format!("{root}/record")),
        (run.gate(), format!("{root}/gate")),
        (run.shard(shard), format!("{root}/shard/0000000000000003")),
        (run.owner(shard), format!("{root}/owner/0000000000000003")),
        (run.listed(Listed::Free, shard), format!("{root}/free/daa6/0000000000000003")),
        (run.listed(Listed::Held, shard), format!("{root}/held/daa6/0000000000000003")),
        (run.listed(Listed::Done, shard), format!("{root}/done/0000000000000003")),
        (run.listed(Listed::Split, shard), format!("{root}/split/0000000000000003")),
        (run.listed(Listed::Parked, shard), format!("{root}/parked/0000000000000003")),
        (run.waiting(worker), format!("{root}/waiting/0000000000000007")),
        (
            run.idle(LogicalTime::from_raw(0x1234), worker),
            format!("{root}/idle/0000000000001234/0000000000000007"),
        ),
        (run.held_by(worker, shard), format!("{root}/worker/0000000000000007/0000000000000003")),
    ] {
        assert_eq!(key.to_string(), expected);
    }
}
