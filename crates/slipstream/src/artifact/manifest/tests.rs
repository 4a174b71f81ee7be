use proptest::prelude::*;

use super::*;

fn witness(revision: u64, digest: u32, key: Option<&str>) -> WitnessMessage {
    WitnessMessage { revision, digest, key: key.map(Key::from) }
}

fn known() -> ExportManifest {
    let mut cursor = LogCursor::new(Position::at(7, 300), &WatchScope::Prefix("a.".into()));
    cursor.evicted = true;
    cursor.witnesses =
        vec![witness(300, 5, Some("a.b")), witness(299, 6, Some("a.\"é")), witness(1, 7, None)];
    ExportManifest {
        backend: "append-log".into(),
        generation: 2,
        compression: Compression::Zstd,
        epoch: 3,
        bucket: Some("rules".into()),
        prefixes: vec!["a.".into()],
        cursor: cursor.encode(),
        cursor_time_ms: Some(1_700_000_000_123),
        evicted: true,
        witnesses: cursor.witnesses,
        files: vec![
            ArtifactFile { path: "log".into(), size: 12, hash: [0xab; 32] },
            ArtifactFile { path: "log2/x".into(), size: 0, hash: [0; 32] },
        ],
    }
}

const GOLDEN: &[u8] = include_bytes!("../../../tests/golden/manifest-1.json");

#[test]
fn the_format_of_a_manifest_does_not_change() {
    assert_eq!(String::from_utf8(known().encode()).unwrap(), str::from_utf8(GOLDEN).unwrap());
    assert_eq!(ExportManifest::decode(GOLDEN), Ok(known()));
    assert_eq!(known().content_id(), "612261f331344b64");
}

#[test]
fn a_manifest_has_more_witnesses_than_its_cursor() {
    let manifest = with_witnesses(20);
    assert_eq!(LogCursor::decode(&manifest.cursor).unwrap().witnesses.len(), 8);
    assert_eq!(manifest.log_cursor().unwrap().witnesses, manifest.witnesses);
    assert_eq!(manifest.rank(), Some(Rank { epoch: 3, incarnation: 7, revision: 3000 }));
    assert_eq!(ExportManifest::decode(&manifest.encode()), Ok(manifest));
}

/// Of a cursor that has seen so many keys.
fn with_witnesses(count: u64) -> ExportManifest {
    let (mut manifest, mut cursor) = (known(), known().log_cursor().unwrap());
    cursor.position = Position::at(7, 3000);
    let one = |at| witness(3000 - at, at as u32, Some(&format!("a.{at}")));
    cursor.witnesses = (0..count).map(one).collect();
    manifest.cursor = cursor.encode();
    manifest.witnesses = cursor.witnesses;
    manifest
}

/// The resume guard takes witnesses for proof of a log: a list that no exporter could have had would
/// prove another.
#[test]
fn witnesses_that_are_not_those_of_the_cursor_are_refused() {
    let refused = |why: &str, change: &dyn Fn(&mut Vec<WitnessMessage>)| {
        let mut manifest = with_witnesses(20);
        change(&mut manifest.witnesses);
        let refused = ExportManifest::decode(&manifest.encode());
        assert_eq!(refused, Err(ArtifactInvalid::Manifest("its witnesses")), "{why}");
    };
    refused("above the end", &|all| all.insert(0, witness(3001, 1, Some("a.new"))));
    refused("another digest", &|all| all[0].digest ^= 1);
    refused("another key", &|all| all[7].key = Some("a.other".into()));
    refused("fewer than the cursor", &|all| all.truncate(7));
    refused("none", &Vec::clear);
    refused("one without key in the middle", &|all| all[12].key = None);
    refused("an empty key", &|all| all[19].key = Some("".into()));
    refused("a key twice", &|all| all[12].key = all[11].key.clone());
    refused("out of order", &|all| all.swap(12, 13));
    refused("too many", &|all| {
        let many = 20..=MAX_REMEMBERED as u64;
        all.extend(many.map(|at| witness(3000 - at, 1, Some(&format!("a.{at}")))));
    });
    let of_no_log = ExportManifest {
        cursor: WatchCursor::from_bytes(vec![1]).unwrap(),
        witnesses: vec![witness(1, 1, None)],
        ..known()
    };
    let refused = ExportManifest::decode(&of_no_log.encode());
    assert_eq!(refused, Err(ArtifactInvalid::Manifest("its witnesses")));
}

#[test]
fn a_scope_that_is_not_that_of_the_cursor_is_refused() {
    for prefixes in [vec![""], vec!["a.b."], vec!["a.", "b."], vec![]] {
        let prefixes = prefixes.into_iter().map(str::to_owned).collect();
        let other = ExportManifest { prefixes, ..known() };
        let refused = ExportManifest::decode(&other.encode());
        let why = ArtifactInvalid::Manifest("its scope is not that of its cursor");
        assert_eq!(refused, Err(why));
    }
}

#[test]
fn an_artifact_is_of_one_bucket_as_far_as_that_is_known() {
    let unnamed = ExportManifest { bucket: None, ..known() };
    for (manifest, bucket) in [(known(), Some("rules")), (known(), None), (unnamed, Some("rules"))]
    {
        assert_eq!(manifest.check_bucket(bucket), Ok(()));
    }
    let (found, expected) = ("rules".into(), "others".into());
    let other = Err(ArtifactInvalid::Bucket { found, expected });
    assert_eq!(known().check_bucket(Some("others")), other);
}

/// The golden manifest with one text in place of another.
fn with(from: &str, to: &str) -> Result<ExportManifest, ArtifactInvalid> {
    let text = str::from_utf8(GOLDEN).unwrap();
    assert_eq!(text.matches(from).count(), 1, "{from}");
    ExportManifest::decode(text.replace(from, to).as_bytes())
}

#[test]
fn a_newer_schema_is_refused_whatever_else_it_says() {
    let newer = Err(ArtifactInvalid::NewerSchema { found: 2 });
    assert_eq!(ExportManifest::decode(br#"{"fields":[],"schema":2}"#), newer);
    assert_eq!(with("\"schema\":1", "\"schema\":2"), newer);
}

#[test]
fn a_manifest_is_written_in_one_way_only() {
    for (from, to) in [
        ("\"schema\":1,", "\"schema\":1, "),
        ("\"generation\":2", "\"generation\":2.0"),
        ("\"evicted\":true", "\"evicted\":true,\"evicted\":true"),
        ("\"evicted\":true", "\"evicted\":true,\"more\":1"),
        ("\"evicted\":true,", ""),
        ("\"evicted\":true", "\"evicted\":false"),
        ("\"compression\":\"zstd\"", "\"compression\":\"lz4\""),
        ("\"cursor_time_ms\":1700000000123", "\"cursor_time_ms\":-1"),
        ("\"revision\":299", "\"revision\":300"),
        ("\"epoch\":3", "\"epoch\":18446744073709551615"),
        ("\"bucket\":\"rules\",", ""),
        ("\"path\":\"log\"", "\"path\":\"log3\""),
        ("\"size\":12", "\"size\":18446744073709551616"),
        ("abababababab\"", "abababababAB\""),
        ("abababababab\"", "abababababab00\""),
        ("\"cursor\":\"06", "\"cursor\":\"6"),
        // In repair.
        ("\"cursor\":\"06", "\"cursor\":\"07"),
    ] {
        let refused = with(from, to);
        assert!(matches!(refused, Err(ArtifactInvalid::Manifest(_))), "{to}: {refused:?}");
    }
    let none = with(
        &format!("\"cursor\":\"{}\"", hex::encode(known().cursor.as_bytes())),
        "\"cursor\":\"\"",
    );
    assert!(matches!(none, Err(ArtifactInvalid::Manifest(_))));
    let sizes = with("\"size\":0", "\"size\":18446744073709551615");
    assert_eq!(sizes, Err(ArtifactInvalid::Manifest("the sizes of its files")));
}

#[test]
fn a_name_stays_below_its_directory() {
    for safe in ["log", "keyspaces/1/tables/3", "OPTIONS-000007", "a.b_c"] {
        assert!(is_safe(safe), "{safe}");
    }
    let long = "x".repeat(MAX_PATH_LEN + 1);
    for unsafe_ in [
        "",
        "/",
        "/etc/passwd",
        "..",
        "a/../b",
        "a/..",
        ".",
        "a//b",
        "a/",
        "a\\b",
        "c:",
        "a b",
        "é",
        "\0",
        &long,
    ] {
        assert!(!is_safe(unsafe_), "{unsafe_:?}");
    }
}

#[test]
fn a_manifest_shows_no_keys() {
    let shown = format!("{:?}", known());
    assert!(!shown.contains("a.b") && shown.contains("revision: Some(300)"), "{shown}");
}

prop_compose! {
    fn any_log_cursor()(
        position in (any::<u64>(), 1000..u64::MAX, any::<bool>()),
        revisions in prop::collection::btree_set(1..1000u64, 0..50),
        has_last_key in any::<bool>(),
        prefixes in prop::collection::vec("\\PC{0,5}", 0..3),
    ) -> (LogCursor, Vec<String>) {
        let (incarnation, revision, evicted) = position;
        let scope = WatchScope::Prefixes(prefixes.clone());
        let keyed = |at: &u64| witness(*at, *at as u32, Some(&format!("key.{at}")));
        let mut witnesses: Vec<_> = revisions.iter().rev().map(keyed).collect();
        if let Some(last) = witnesses.last_mut().filter(|_| !has_last_key) {
            last.key = None;
        }
        let cursor = LogCursor::new(Position::at(incarnation, revision), &scope);
        (LogCursor { evicted, witnesses, ..cursor }, prefixes)
    }
}

prop_compose! {
    fn any_manifest()(
        backend in "[a-z]{0,10}",
        bucket in prop::option::of("\\PC{0,5}"),
        numbers in (any::<u32>(), prop::option::of(any::<u64>())),
        // Short bytes are no cursor of a log.
        of_no_log in prop::option::of((prop::collection::vec(any::<u8>(), 1..20), any::<bool>())),
        (cursor, prefixes) in any_log_cursor(),
        files in prop::collection::btree_map("[a-z0-9]{1,9}(/[a-z0-9.]{1,5}x){0,2}", any::<(u32, [u8; 32])>(), 0..8),
    ) -> ExportManifest {
        let (generation, cursor_time_ms) = numbers;
        let (cursor, evicted, witnesses) = match of_no_log {
            None => (cursor.encode(), cursor.evicted, cursor.witnesses),
            Some((bytes, evicted)) => (WatchCursor::from_bytes(bytes).unwrap(), evicted, Vec::new()),
        };
        ExportManifest {
            backend,
            generation,
            compression: Compression::None,
            epoch: 7,
            bucket,
            prefixes,
            cursor,
            cursor_time_ms,
            evicted,
            witnesses,
            files: files
                .into_iter()
                .map(|(path, (size, hash))| ArtifactFile { path, size: size.into(), hash })
                .collect(),
        }
    }
}

proptest! {
    #[test]
    fn a_manifest_survives_its_bytes(manifest in any_manifest()) {
        prop_assert_eq!(ExportManifest::decode(&manifest.encode()), Ok(manifest));
    }

    #[test]
    fn a_manifest_with_a_changed_byte_is_another_or_none(
        manifest in any_manifest(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = manifest.encode();
        *at.get_mut(&mut bytes) = byte;
        if let Ok(decoded) = ExportManifest::decode(&bytes) {
            prop_assert_eq!(decoded.encode(), bytes);
        }
    }
}
