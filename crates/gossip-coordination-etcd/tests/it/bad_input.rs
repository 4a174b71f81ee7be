//! What is wrong with a cluster, its users or its values gets an error that says so, and nothing is
//! overwritten.

use std::time::{Duration, Instant};

use etcd_client::{AlarmAction, AlarmType, Client, ConnectOptions, Permission};
use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{RunId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CheckpointError, ClaimError, CoordinationBackend, IdempotentOutcome,
    InfraError, LeasedOperationError, RunManagement, ShardClaiming, ShardFilter,
};
use gossip_coordination_etcd::keyspace::{Key, Keyspace, Listed};
use gossip_coordination_etcd::kv::{Interception, Op, SimKv, Txn};
use gossip_coordination_etcd::{ConnectError, Credentials, EtcdConfig, EtcdCoordinator};

use crate::operations::{OPERATIONS, attempt, prepare};
use crate::server::{EtcdServer, config, free_ports};
use crate::world::*;

#[test]
fn a_wrong_endpoint_is_named() {
    let [port] = free_ports();
    let url = format!("http://127.0.0.1:{port}");
    let mut config = config([url.clone()]);
    config.request_timeout = Duration::from_millis(300);
    let started = Instant::now();
    let error = EtcdCoordinator::connect(config).unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&url), "{error}");
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn inside_a_runtime_the_sync_coordinator_refuses_instead_of_panicking() {
    let server = EtcdServer::start();
    let mut coordinator = EtcdCoordinator::connect(server.config()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let error = coordinator.create_run(NOW, TENANT, RUN, CONFIG).unwrap_err();
        assert!(error.to_string().contains("AsyncEtcdCoordinator"), "{error}");
        assert!(!error.is_retryable());
        let refused = EtcdCoordinator::connect(server.config());
        assert!(matches!(refused, Err(ConnectError::InsideRuntime)));
        // Dropping it there is no panic either.
        drop(coordinator);
    });
}

/// A role that may read and write the namespace does for everything, and nothing else does.
#[test]
fn a_user_with_rights_on_the_namespace_alone_can_do_everything() {
    // Passwords are many here, and hashed cheaply.
    let server = EtcdServer::start_with(&["--bcrypt-cost", "4"]);
    let mut config = server.config();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let random = config.namespace.clone();
    let of_operation = |operation: &str| format!("{random}-{operation}");
    let password = |user: &str| format!("{user}-{random}");
    runtime.block_on(async {
        let mut client = Client::connect([server.url()], None).await.unwrap();
        for user in ["root", "worker", "stranger"] {
            client.user_add(user, password(user), None).await.unwrap();
        }
        client.role_add("root").await.unwrap();
        client.user_grant_role("root", "root").await.unwrap();
        client.role_add("gossip").await.unwrap();
        let own = OPERATIONS.map(of_operation).into_iter().chain([random.clone()]);
        for namespace in own {
            let rights = Permission::read_write(format!("{namespace}/")).with_prefix();
            client.role_grant_permission("gossip", rights).await.unwrap();
        }
        client.user_grant_role("worker", "gossip").await.unwrap();
        client.auth_enable().await.unwrap();
    });
    for (user, pass) in [("worker", "wrong".to_owned()), ("stranger", password("stranger"))] {
        config.credentials = Some(Credentials { user: user.into(), password: pass.clone() });
        let error = EtcdCoordinator::connect(config.clone()).unwrap_err();
        assert!(matches!(error, ConnectError::Denied { .. }), "{user}: {error}");
        assert!(!format!("{error:?} {error}").contains(&pass), "{error}");
    }
    config.credentials = None;
    let error = EtcdCoordinator::connect(config.clone()).unwrap_err();
    assert!(matches!(error, ConnectError::Denied { .. }), "{error}");

    let credentials = Credentials { user: "worker".into(), password: password("worker") };
    config.credentials = Some(credentials);
    let mut coordinator = EtcdCoordinator::connect(config.clone()).unwrap();
    begin(&mut coordinator, 3, 10).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(1);
    let lease = coordinator
        .acquire_and_restore_into(NOW, TENANT, shard(0), worker, &mut scratch)
        .unwrap()
        .lease;
    coordinator.checkpoint(NOW, TENANT, &lease, CursorUpdate::at(&key(2)), op(1)).unwrap();
    // A change of users makes tokens old; the next request gets a new one.
    runtime.block_on(async {
        let options = ConnectOptions::new().with_user("root", password("root"));
        let mut client = Client::connect([server.url()], Some(options)).await.unwrap();
        client.user_add("late", password("late"), None).await.unwrap();
    });
    coordinator.complete(NOW, TENANT, &lease, CursorUpdate::at(&key(9)), op(2)).unwrap();
    let mut listed = Vec::new();
    coordinator.list_shards_into(NOW, TENANT, RUN, ShardFilter::all(), &mut listed).unwrap();
    assert_eq!(listed.len(), 3);
    coordinator.note_idle(NOW, TENANT, RUN, worker).unwrap();
    for operation in OPERATIONS {
        let config = EtcdConfig { namespace: of_operation(operation), ..config.clone() };
        let mut coordinator = EtcdCoordinator::connect(config).unwrap();
        let lease = prepare(&mut coordinator, operation);
        let outcome = attempt(&mut coordinator, operation, lease.as_ref());
        assert_eq!(outcome, Ok(IdempotentOutcome::Executed(())), "{operation}");
    }
}

#[test]
fn a_full_cluster_says_so_and_goes_on_once_it_has_room() {
    let server = EtcdServer::start();
    let mut coordinator = EtcdCoordinator::connect(server.config()).unwrap();
    begin(&mut coordinator, 1, 10).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let lease = coordinator
        .acquire_and_restore_into(NOW, TENANT, shard(0), WorkerId::from_raw(1), &mut scratch)
        .unwrap()
        .lease;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let alarm = |action| {
        runtime.block_on(async {
            let mut client = Client::connect([server.url()], None).await.unwrap();
            client.alarm(action, AlarmType::Nospace, None).await.unwrap();
        });
    };
    alarm(AlarmAction::Activate);
    let error =
        coordinator.checkpoint(NOW, TENANT, &lease, CursorUpdate::at(&key(2)), op(1)).unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("checkpoint.txn") && said.contains("NOSPACE"), "{said}");
    assert!(!error.is_retryable(), "somebody has to make room");
    alarm(AlarmAction::Deactivate);
    coordinator.checkpoint(NOW, TENANT, &lease, CursorUpdate::at(&key(2)), op(1)).unwrap();
}

/// Flipped bytes, and a version from the future: an error that names the key, and the value stays.
#[test]
fn a_damaged_value_is_an_error_that_names_its_key_and_is_left_alone() {
    let server = EtcdServer::start();
    let mut coordinator = EtcdCoordinator::connect(server.config()).unwrap();
    begin(&mut coordinator, 1, 10).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(1);
    let lease = coordinator
        .acquire_and_restore_into(NOW, TENANT, shard(0), worker, &mut scratch)
        .unwrap()
        .lease;
    let keys = coordinator.keyspace().run(TENANT, RUN);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut client =
        runtime.block_on(async { Client::connect([server.url()], None).await.unwrap() });
    let mut get = |key: &Key| {
        let got = runtime.block_on(client.get(key.as_bytes(), None)).unwrap();
        got.kvs()[0].value().to_vec()
    };
    let mut put_client =
        runtime.block_on(async { Client::connect([server.url()], None).await.unwrap() });
    let mut put = |key: &Key, value: &[u8]| {
        runtime.block_on(put_client.put(key.as_bytes(), value, None)).unwrap();
    };
    for place in [keys.shard(lease.shard()), keys.gate()] {
        let whole = get(&place);
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x10;
        let mut newer = whole.clone();
        newer[1] = 200;
        for broken in [flipped, newer, Vec::new()] {
            put(&place, &broken);
            let error = coordinator
                .checkpoint(NOW, TENANT, &lease, CursorUpdate::at(&key(2)), op(1))
                .unwrap_err();
            let said = error.to_string();
            let is_damage =
                matches!(error, CheckpointError::BackendError(InfraError::Corruption { .. }));
            assert!(is_damage && said.contains(&place.to_string()), "{said}");
            assert_eq!(get(&place), broken);
        }
        put(&place, &whole);
    }
    coordinator.checkpoint(NOW, TENANT, &lease, CursorUpdate::at(&key(2)), op(1)).unwrap();
    let record = keys.record();
    let mut broken = get(&record);
    broken[40] ^= 1;
    put(&record, &broken);
    let said = coordinator.get_run(TENANT, RUN).unwrap_err().to_string();
    assert!(said.contains(&record.to_string()), "{said}");
    let said = coordinator.fail_run(NOW, TENANT, RUN, op(5)).unwrap_err().to_string();
    assert!(said.contains(&record.to_string()), "{said}");
    assert_eq!(get(&record), broken);
}

/// What the configuration says fits is what the server takes: the largest split there is.
#[test]
fn the_largest_split_fits_into_one_transaction_of_the_server() {
    use gossip_contracts::coordination::{InitialShardInput, ShardSpecRef, SplitReplacePlan};
    use gossip_contracts::identity::ShardId;
    let server = EtcdServer::start();
    let mut config = server.config();
    config.max_split_children = 60;
    let bytes_max = config.max_split_bytes;
    let mut coordinator = EtcdCoordinator::connect(config).unwrap();
    coordinator.create_run(NOW, TENANT, RUN, CONFIG).unwrap();
    let long = |first: u8| [vec![first; 1], vec![b'x'; 4_095]].concat();
    let bounds: Vec<_> = (1..=61).map(long).collect();
    let metadata = vec![b'm'; 16_384];
    let whole = ShardSpecRef::new(&bounds[0], &bounds[60], &metadata);
    let rows = [InitialShardInput::new(ShardId::from_raw(0), whole, CursorUpdate::initial())];
    coordinator.register_shards(NOW, TENANT, RUN, &rows, op(1)).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let lease = coordinator
        .acquire_and_restore_into(NOW, TENANT, shard(0), WorkerId::from_raw(1), &mut scratch)
        .unwrap()
        .lease;
    // The largest cursor, too.
    let token = vec![b't'; 16_384];
    let cursor = CursorUpdate::new(Some(&bounds[0]), Some(&token));
    coordinator.checkpoint(NOW, TENANT, &lease, cursor, op(2)).unwrap();
    let about = (bytes_max - 60 * 2 * 4_096) / 60;
    let part =
        |pair: usize| ShardSpecRef::new(&bounds[pair], &bounds[pair + 1], &metadata[..about]);
    let plan = SplitReplacePlan::new((0..60).map(part));
    let children = coordinator.split_replace(NOW, TENANT, &lease, &plan, op(3)).unwrap();
    assert_eq!(children.into_inner().children.len(), 60);
    assert_eq!(coordinator.get_run_progress(TENANT, RUN).unwrap().active, 60);
}

fn on_model(kv: &SimKv, change: impl FnOnce(&mut EtcdConfig)) -> EtcdCoordinator<SimKv> {
    let mut config = config(["http://nowhere:1".into()]);
    change(&mut config);
    EtcdCoordinator::on_model(kv.clone(), config).unwrap()
}

fn put(kv: &SimKv, key: &Key, value: Vec<u8>) {
    kv.txn_now(&Txn { then: vec![Op::put(key.clone(), value)], ..Txn::default() }).unwrap();
}

/// A record under the key of another shard is damage, and is not taken for that other's.
#[test]
fn a_record_under_another_key_is_an_error_that_names_the_key() {
    let kv = SimKv::new();
    let mut coordinator = on_model(&kv, |_| {});
    begin(&mut coordinator, 3, 10).unwrap();
    let keys = coordinator.keyspace().run(TENANT, RUN);
    let [first, second] = [0, 1].map(|number| keys.shard(shard(number).shard));
    let record_of = |key: &Key| {
        let entries = kv.entries();
        entries.into_iter().find(|entry| entry.key == key.as_bytes()).unwrap().value
    };
    put(&kv, &first, record_of(&second));
    coordinator.cancel_run(NOW, TENANT, RUN, op(1)).unwrap();
    let before = kv.revision();
    let mut listed = Vec::new();
    let page = std::num::NonZeroUsize::new(10).unwrap();
    let all = ShardFilter::all();
    for error in [
        coordinator.list_shards_into(NOW, TENANT, RUN, all, &mut listed).unwrap_err().to_string(),
        coordinator
            .list_shards_page_into(NOW, TENANT, RUN, all, None, page, &mut listed)
            .unwrap_err()
            .to_string(),
    ] {
        assert!(error.contains(&first.to_string()) && error.contains("another"), "{error}");
    }
    assert_eq!(kv.revision(), before);
}

/// The same of a run's gate, by which claims go.
#[test]
fn the_gate_of_another_run_is_an_error_that_names_the_key() {
    let kv = SimKv::new();
    let mut coordinator = on_model(&kv, |_| {});
    begin(&mut coordinator, 1, 10).unwrap();
    let other = RunId::from_raw(2);
    coordinator.create_run(NOW, TENANT, other, CONFIG).unwrap();
    let keyspace = coordinator.keyspace();
    let [gate, of_other] = [RUN, other].map(|run| keyspace.run(TENANT, run).gate());
    let entries = kv.entries();
    let value = entries.into_iter().find(|entry| entry.key == gate.as_bytes()).unwrap().value;
    put(&kv, &of_other, value);
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(1);
    let claimed = coordinator.claim_next_available(NOW, TENANT, other, worker, &mut scratch);
    let said = claimed.unwrap_err().to_string();
    assert!(said.contains(&of_other.to_string()), "{said}");
}

/// A deadline in the list of held shards that is none.
#[test]
fn a_damaged_list_is_an_error_that_names_the_key_and_renewals_go_on() {
    let kv = SimKv::new();
    let mut coordinator = on_model(&kv, |_| {});
    begin(&mut coordinator, 1, 10).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(1);
    let claimed = coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch);
    let lease = claimed.unwrap().lease;
    let keys = coordinator.keyspace().run(TENANT, RUN);
    let listed = keys.listed(Listed::Held, lease.shard());
    for broken in [&b""[..], b"soon", &[0; 8]] {
        put(&kv, &listed, broken.to_vec());
        let before = kv.revision();
        let claimed = coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch);
        let said = claimed.unwrap_err().to_string();
        assert!(said.contains(&listed.to_string()), "{said}");
        assert_eq!(kv.revision(), before);
    }
    coordinator.renew(at(1), TENANT, &lease).unwrap();
    let claimed = coordinator.claim_next_available(at(1), TENANT, RUN, worker, &mut scratch);
    assert!(matches!(claimed, Err(ClaimError::NoneAvailable { .. })), "a renewal mends it");
}

/// Leases that end before the process's, or before an operation does, are refused before anything is
/// stored, and the refusal names the setting; also where another process created the run.
#[test]
fn a_run_whose_leases_do_not_fit_the_settings_is_refused() {
    let kv = SimKv::new();
    let mut coordinator = on_model(&kv, |config| config.owner_lease_ttl = Duration::from_secs(31));
    let empty = kv.revision();
    let error = coordinator.create_run(NOW, TENANT, RUN, CONFIG).unwrap_err();
    assert!(error.to_string().contains("owner_lease_ttl") && !error.is_retryable(), "{error}");
    assert_eq!(kv.revision(), empty);
    let namespace = coordinator.config().namespace.clone();
    let mut other = on_model(&kv, |config| config.namespace = namespace.clone());
    other.create_run(NOW, TENANT, RUN, CONFIG).unwrap();
    let created = kv.revision();
    let manifest = Manifest::of(2, 10);
    let register = |coordinator: &mut EtcdCoordinator<SimKv>| {
        coordinator.register_shards(NOW, TENANT, RUN, &manifest.rows(), op(1))
    };
    let error = register(&mut coordinator).unwrap_err();
    assert!(error.to_string().contains("owner_lease_ttl") && !error.is_retryable(), "{error}");
    let mut slow = on_model(&kv, |config| {
        config.namespace = namespace;
        config.operation_timeout = Duration::from_secs(31);
    });
    let error = register(&mut slow).unwrap_err();
    assert!(error.to_string().contains("operation_timeout"), "{error}");
    assert_eq!(kv.revision(), created);
    register(&mut other).unwrap();
}

/// What a cluster takes in one transaction does not make requests larger than it takes.
#[test]
fn a_large_registration_fits_however_many_operations_the_cluster_takes() {
    for txn_ops_max in [64, 10_000] {
        let kv = SimKv::new();
        let mut coordinator = on_model(&kv, |config| config.txn_ops_max = txn_ops_max);
        begin(&mut coordinator, 10_000, 10).unwrap();
        assert_eq!(coordinator.get_run_progress(TENANT, RUN).unwrap().active, 10_000);
        coordinator.cancel_run(NOW, TENANT, RUN, op(1)).unwrap();
        kv.compact(kv.revision()).unwrap();
        coordinator.delete_run(NOW, TENANT, RUN).unwrap();
    }
}

/// A reader that is slower than compaction every time says so instead of mixing views.
#[test]
fn a_view_that_is_compacted_every_time_is_an_error_that_says_so() {
    let kv = SimKv::new();
    let mut coordinator = on_model(&kv, |config| config.attempts = 3);
    begin(&mut coordinator, 200, 10).unwrap();
    let (store, mut seen) = (kv.clone(), 0);
    let elsewhere = Keyspace::new("elsewhere").unwrap().shard_total();
    kv.intercept(move |_| {
        seen += 1;
        let write = Op::put(elsewhere.clone(), [seen]);
        store.txn_now(&Txn { then: vec![write], ..Txn::default() }).unwrap();
        store.compact(store.revision()).unwrap();
        Interception::Pass
    });
    let mut listed = Vec::new();
    let listing = coordinator.list_shards_into(NOW, TENANT, RUN, ShardFilter::all(), &mut listed);
    let said = listing.unwrap_err().to_string();
    assert!(said.starts_with("list_shards.load") && said.contains("compacted"), "{said}");
    kv.pass_all();
    coordinator.list_shards_into(NOW, TENANT, RUN, ShardFilter::all(), &mut listed).unwrap();
    assert_eq!(listed.len(), 200);
}

#[test]
fn a_split_above_the_cap_is_refused_with_the_cap_and_changes_nothing() {
    use gossip_contracts::coordination::{ShardSpecRef, plan_split_replace_at_points};
    let kv = SimKv::new();
    let mut coordinator = on_model(&kv, |_| {});
    begin(&mut coordinator, 1, 100).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let lease = coordinator
        .acquire_and_restore_into(NOW, TENANT, shard(0), WorkerId::from_raw(1), &mut scratch)
        .unwrap()
        .lease;
    let before = kv.revision();
    let (from, to) = (key(1), key(101));
    let points: Vec<_> = (1..9).map(|part| key(part * 10)).collect();
    let points: Vec<&[u8]> = points.iter().map(|point| &point[..]).collect();
    let range = ShardSpecRef::new(&from, &to, b"");
    let nine = plan_split_replace_at_points(range, &points).unwrap();
    let error = coordinator.split_replace(NOW, TENANT, &lease, &nine, op(1)).unwrap_err();
    let said = error.to_string();
    assert!(said.contains('9') && said.contains('8'), "{said}");
    assert_eq!(kv.revision(), before);
    let eight = plan_split_replace_at_points(range, &points[1..]).unwrap();
    coordinator.split_replace(NOW, TENANT, &lease, &eight, op(1)).unwrap();
}
