use proptest::prelude::*;

use super::*;

fn known() -> ExportManifest {
    let mut cursor = LogCursor::new(Position::at(7, 300), &WatchScope::Prefix("a.".into()));
    let witness = |revision, digest, key: Option<&str>| WitnessMessage {
        revision,
        digest,
        key: key.map(Key::from),
    };
    cursor.evicted = true;
    cursor.witnesses = vec![witness(300, 5, Some("a.b"))];
    ExportManifest {
        backend: "append-log".into(),
        generation: 2,
        compression: Compression::Zstd,
        epoch: 3,
        prefixes: vec!["a.".into()],
        cursor: cursor.encode(),
        cursor_time_ms: Some(1_700_000_000_123),
        evicted: true,
        witnesses: vec![
            witness(300, 5, Some("a.b")),
            witness(299, 6, Some("a.\"é")),
            witness(1, 7, None),
        ],
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
    assert_eq!(known().content_id(), "335c880e9d7ed28e");
}

#[test]
fn a_manifest_has_more_witnesses_than_its_cursor() {
    assert_eq!(known().log_cursor().unwrap().witnesses, known().witnesses);
    let fewer = ExportManifest { witnesses: Vec::new(), ..known() };
    assert_eq!(fewer.log_cursor().unwrap().witnesses.len(), 1);
    assert_eq!(fewer.rank(), Some(Rank { epoch: 3, incarnation: 7, revision: 300 }));
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
    fn any_manifest()(
        backend in "[a-z]{0,10}",
        numbers in (any::<u32>(), prop::option::of(any::<u64>()), any::<bool>()),
        prefixes in prop::collection::vec("\\PC{0,5}", 0..3),
        cursor in prop::collection::vec(any::<u8>(), 1..20),
        revisions in prop::collection::btree_set(any::<u64>(), 0..MAX_REMEMBERED),
        keys in prop::collection::vec(prop::option::of("\\PC{1,5}"), MAX_REMEMBERED),
        files in prop::collection::btree_map("[a-z0-9]{1,9}(/[a-z0-9.]{1,5}x){0,2}", any::<(u32, [u8; 32])>(), 0..8),
    ) -> ExportManifest {
        let (generation, cursor_time_ms, evicted) = numbers;
        let witnesses = revisions.into_iter().rev().zip(keys);
        ExportManifest {
            backend,
            generation,
            compression: Compression::None,
            epoch: 7,
            prefixes,
            cursor: WatchCursor::from_bytes(cursor).unwrap(),
            cursor_time_ms,
            evicted,
            witnesses: witnesses
                .map(|(revision, key)| WitnessMessage { revision, digest: 1, key: key.map(Key::from) })
                .collect(),
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
        // Short bytes are no cursor of a log.
        prop_assert!(LogCursor::decode(&manifest.cursor).is_err());
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
