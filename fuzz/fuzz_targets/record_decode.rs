//! Coordination records out of arbitrary bytes.
#![no_main]

use gossip_coordination::codec::{self, RecordKind};

/// What is accepted is encoded as it came, unless it came in an older version. Nothing panics.
fn check(bytes: &[u8], out: &mut Vec<u8>) {
    if let Ok(shard) = codec::decode_shard(bytes) {
        shard.view().assert_invariants();
        codec::encode_shard(&shard.view(), out);
        assert_eq!(out, bytes);
    }
    if let Ok(run) = codec::decode_run(bytes) {
        run.assert_invariants();
        codec::encode_run(&run, out);
        if bytes[1] == RecordKind::Run.newest_version() {
            assert_eq!(out, bytes);
        }
        assert_eq!(codec::decode_run(out), Ok(run));
    }
    if let Ok(gate) = codec::decode_gate(bytes) {
        codec::encode_gate(&gate, out);
        assert_eq!(out, bytes);
    }
    if let Ok(owner) = codec::decode_owner(bytes) {
        codec::encode_owner(&owner, out);
        assert_eq!(out, bytes);
    }
}

// The first byte chooses the kind and its version and the rest are the fields, so that the parser behind header
// and checksum is reached.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut out = Vec::new();
    check(data, &mut out);
    let Some((kind, fields)) = data.split_first() else { return };
    let mut sealed = vec![1 + kind % 4, 1 + kind / 4 % 2];
    sealed.extend(fields);
    sealed.extend(crc32fast::hash(&sealed).to_le_bytes());
    check(&sealed, &mut out);
});
