//! One item: is it known, can it be read, what is in it.

use gossip_connectors::binary::binary_reason;
use gossip_contracts::connector::{Connector, ConnectorError, ItemReader, PageEntry, SkipReason};
use gossip_contracts::identity::{
    FindingId, ItemId, ObjectVersionId, OccurrenceId, RunId, SecretHash, TenantSecretKey,
};
use gossip_engine::{Engine, Finding, Scratch};

use crate::clock::now;
use crate::state::LOCAL_TENANT;
use crate::stats::ScanStats;
use crate::store::{ItemRow, LedgerRow, OccurrenceRow, Scope};

/// Bytes read at a time.
const CHUNK: usize = 256 << 10;
/// Reads of an item that fails in passing.
const TRIES: usize = 3;

/// What is the same for all items of a run.
pub(crate) struct ItemContext<'c> {
    pub(crate) source: &'c dyn Connector,
    pub(crate) engine: &'c Engine,
    pub(crate) key: &'c TenantSecretKey,
    pub(crate) target: &'c [u8],
    pub(crate) scope: Scope,
    pub(crate) run: RunId,
    pub(crate) stats: &'c ScanStats,
}

/// A worker's buffers.
#[derive(Default)]
pub(crate) struct ItemBuffers {
    scratch: Scratch,
    chunk: Vec<u8>,
}

/// What became of an item.
pub(crate) enum Handled {
    /// This run has it already.
    Covered,
    /// It has not changed since an earlier run.
    Unchanged,
    /// It was looked at.
    Read(ItemRow),
    /// The worker was told to stop in the middle of it.
    Stopped,
}

impl ItemContext<'_> {
    /// Handles an entry of a listing. `go_on` is asked now and then during long reads.
    pub(crate) fn handle(
        &self,
        entry: &PageEntry<'_>,
        known: Option<&LedgerRow>,
        buffers: &mut ItemBuffers,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Handled {
        if let Some(known) = known
            && !known.failed
            && !entry.version.is_empty()
            && known.version == entry.version
        {
            ScanStats::add(&self.stats.items, 1);
            ScanStats::add(&self.stats.unchanged, 1);
            return if known.run == self.run { Handled::Covered } else { Handled::Unchanged };
        }
        let mut row = ItemRow {
            key: entry.key.to_vec(),
            version: Vec::new(),
            bytes: 0,
            skipped: None,
            failed: None,
            occurrences: Vec::new(),
        };
        if let Some(reason) = entry.skip {
            match skip_text(reason) {
                // Nobody meant to leave it out, so it is tried again next time.
                Err(failed) => row.failed = Some(failed.to_owned()),
                Ok(skipped) => {
                    row.version = entry.version.to_vec();
                    row.skipped = Some(skipped.to_owned());
                }
            }
        } else {
            for attempt in 1..=TRIES {
                match self.read(entry.key, &mut row, buffers, go_on) {
                    Ok(true) => break,
                    Ok(false) => return Handled::Stopped,
                    Err(error) if error.is_retryable() && attempt < TRIES => {}
                    Err(error) => {
                        tracing::warn!(%error, "an item could not be read");
                        row.occurrences.clear();
                        row.version.clear();
                        row.bytes = 0;
                        row.failed = Some(failure_text(&error).to_owned());
                        break;
                    }
                }
            }
        }
        ScanStats::add(&self.stats.items, 1);
        ScanStats::add(&self.stats.skipped, u64::from(row.skipped.is_some()));
        ScanStats::add(&self.stats.failed, u64::from(row.failed.is_some()));
        ScanStats::add(&self.stats.findings, row.occurrences.len() as u64);
        Handled::Read(row)
    }

    /// Reads and scans; `false` when told to stop.
    fn read(
        &self,
        key: &[u8],
        row: &mut ItemRow,
        buffers: &mut ItemBuffers,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, ConnectorError> {
        row.occurrences.clear();
        let opened_at_ms = now().as_raw();
        let mut reader = self.source.open(key)?;
        row.version = reader.version().to_vec();
        row.bytes = reader.size();
        let ItemBuffers { scratch, chunk } = buffers;
        chunk.resize(CHUNK, 0);

        let mut offset = 0;
        let mut filled = self.fill(reader.as_mut(), offset, chunk)?;
        if let Some(reason) = binary_reason(&chunk[..filled]) {
            row.skipped = Some(format!("binary: {reason}"));
            self.name_version(reader.as_ref(), row, opened_at_ms)?;
            return Ok(true);
        }
        let ItemRow { version, occurrences, .. } = row;
        let mut on_finding = |found: Finding<'_>| {
            occurrences.push(self.occurrence(key, version, &found));
        };
        let mut stream = self.engine.stream(scratch, Some(key));
        while filled > 0 {
            stream.push(&chunk[..filled], &mut on_finding);
            offset += filled as u64;
            if !go_on() {
                return Ok(false);
            }
            // Not the size alone: what the kernel makes up as it is read says that it is empty.
            if filled < chunk.len() && row.bytes > 0 && offset >= row.bytes {
                break;
            }
            filled = self.fill(reader.as_mut(), offset, chunk)?;
        }
        stream.finish(&mut on_finding);
        row.bytes = offset;
        self.name_version(reader.as_ref(), row, opened_at_ms)?;
        Ok(true)
    }

    /// What changed while it was read, or may still change under the same name, is read again next
    /// time.
    fn name_version(
        &self,
        reader: &dyn ItemReader,
        row: &mut ItemRow,
        opened_at_ms: u64,
    ) -> Result<(), ConnectorError> {
        let settled = self.source.is_settled(&row.version, opened_at_ms);
        if !settled || reader.version_now()? != row.version {
            row.version.clear();
        }
        Ok(())
    }

    fn fill(
        &self,
        reader: &mut dyn ItemReader,
        offset: u64,
        chunk: &mut [u8],
    ) -> Result<usize, ConnectorError> {
        let read = reader.read_at(offset, chunk)?;
        ScanStats::add(&self.stats.bytes, read as u64);
        Ok(read)
    }

    fn occurrence(&self, key: &[u8], version: &[u8], found: &Finding<'_>) -> OccurrenceRow {
        let item = ItemId::derive(self.target, key);
        let version = ObjectVersionId::derive(item, version);
        let rule = found.rule();
        let secret = SecretHash::derive(self.key, found.secret().expose());
        let finding = FindingId::derive(LOCAL_TENANT, item, rule.fingerprint(), secret);
        let span = found.span();
        OccurrenceRow {
            occurrence: OccurrenceId::derive(finding, version, span.start, span.len),
            finding,
            secret,
            rule: rule.id().to_owned(),
            fingerprint: rule.fingerprint(),
            severity: format!("{:?}", found.severity()).to_lowercase(),
            confidence: format!("{:?}", found.confidence()).to_lowercase(),
            redacted: found.secret().redact().to_string(),
            start: span.start,
            length: span.len,
            line: found.position().line,
            column: found.position().column,
        }
    }
}

/// In words; `Err` for what should have been read.
fn skip_text(reason: SkipReason) -> Result<&'static str, &'static str> {
    match reason {
        SkipReason::Link => Ok("link"),
        SkipReason::Special => Ok("not a file"),
        SkipReason::Ignored => Ok("ignored"),
        SkipReason::OtherFileSystem => Ok("on another file system"),
        SkipReason::KeyTooLong => Err("path too long"),
        SkipReason::PermissionDenied => Err("permission denied"),
        _ => Err("unreadable"),
    }
}

fn failure_text(error: &ConnectorError) -> &'static str {
    match error {
        ConnectorError::NotFound { .. } => "vanished",
        ConnectorError::PermissionDenied { .. } => "permission denied",
        ConnectorError::Retryable { .. } => "kept failing",
        _ => "unreadable",
    }
}
