//! What holds of any bytes, for property tests and the fuzzer.

use slipstream::{Snapshot, SnapshotError};

/// No bytes make a reader panic, in any format; what is cut off a readable log leaves a readable
/// log; and a log whose frames carry the right checks is refused or read, whatever they hold.
pub(crate) fn check_log(data: &[u8]) {
    check(data);
    for version in [1u8, 2] {
        let mut log = b"PGSS".to_vec();
        log.extend_from_slice(&[version, 0]);
        if version == 2 {
            let check = crc32fast::hash(&log);
            log.extend_from_slice(&check.to_le_bytes());
            log.extend_from_slice(&[0xFF; 2]);
        }
        let mut with_checks = log.clone();
        log.extend_from_slice(data);
        check(&log);
        // The first byte is the length of a record, and so on.
        let mut rest = data;
        while let Some((&len, more)) = rest.split_first() {
            let (body, more) = more.split_at(usize::from(len).min(more.len()));
            seal(version, body, &mut with_checks);
            rest = more;
        }
        check(&with_checks);
    }
}

fn seal(version: u8, body: &[u8], log: &mut Vec<u8>) {
    let check = crc32fast::hash(body);
    if version == 2 {
        let mut header = (body.len() as u32).to_le_bytes().to_vec();
        header.extend_from_slice(&check.to_le_bytes());
        header.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
        log.extend_from_slice(&header);
    } else {
        log.extend_from_slice(&check.to_le_bytes());
    }
    log.extend_from_slice(body);
}

fn check(log: &[u8]) {
    match Snapshot::read(log, log.len() as u64) {
        Ok(_) => {
            for cut in 1..log.len().min(20) {
                let len = log.len() - cut;
                Snapshot::read(&log[..len], len as u64).expect("a prefix of what can be read");
            }
        }
        Err(SnapshotError::Corrupted(_) | SnapshotError::InvalidFormat(_)) => {}
        Err(error) => panic!("{error}"),
    }
}
