//! One item: is it known, can it be read, what is in it.

use gossip_connectors::binary::binary_reason;
use gossip_contracts::connector::{Connector, ConnectorError, ItemReader, PageEntry, SkipReason};
use gossip_contracts::identity::{
    FindingId, ItemId, ObjectVersionId, OccurrenceId, RunId, SecretHash, TenantSecretKey,
};
use gossip_engine::{Engine, Finding, Scratch, StreamMark};

use crate::clock::now;
use crate::in_item::InItem;
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
    /// Nothing that earlier runs stored is trusted.
    pub(crate) fresh: bool,
    pub(crate) stats: &'c ScanStats,
}

/// A worker's buffers.
#[derive(Default)]
pub(crate) struct ItemBuffers {
    scratch: Scratch,
    chunk: Vec<u8>,
}

/// An item in hand, before the next read of it.
pub(crate) struct InHand<'i> {
    pub(crate) row: &'i mut ItemRow,
    /// Where it can be gone on with; all that was found before is in `row` or stored.
    pub(crate) mark: Option<StreamMark>,
    /// Bytes up to here were read.
    pub(crate) offset: u64,
    /// As many more are about to be, at most.
    pub(crate) next: u64,
    pub(crate) opened_at_ms: u64,
}

impl InHand<'_> {
    /// What is known of it so far, as a row that nobody takes for the whole.
    pub(crate) fn part_row(&self) -> ItemRow {
        ItemRow { version: Vec::new(), bytes: self.offset, ..self.row.clone() }
    }

    /// Its occurrences up to now are stored.
    pub(crate) fn part_is_stored(&mut self, stats: &ScanStats) {
        ScanStats::add(&stats.findings, self.row.occurrences.len() as u64);
        self.row.occurrences.clear();
        self.row.begun = true;
    }
}

/// Asked before every read: `false` stops.
pub(crate) type GoOn<'g> = dyn FnMut(&mut InHand<'_>) -> bool + 'g;

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
    /// Handles an entry of a listing, from its start or from where `part` ends.
    pub(crate) fn handle(
        &self,
        entry: &PageEntry<'_>,
        known: Option<&LedgerRow>,
        mut part: Option<&InItem>,
        buffers: &mut ItemBuffers,
        go_on: &mut GoOn<'_>,
    ) -> Handled {
        if let Some(known) = known
            && !known.failed
            && !entry.version.is_empty()
            && known.version == entry.version
            && (known.run == self.run || !self.fresh)
        {
            if known.run == self.run {
                return Handled::Covered;
            }
            ScanStats::add(&self.stats.items, 1);
            ScanStats::add(&self.stats.unchanged, 1);
            ScanStats::add(&self.stats.unchanged_bytes, entry.size);
            return Handled::Unchanged;
        }
        let mut row = ItemRow {
            key: entry.key.to_vec(),
            version: Vec::new(),
            bytes: 0,
            skipped: None,
            failed: None,
            occurrences: Vec::new(),
            begun: false,
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
                match self.read(entry.key, part.take(), &mut row, buffers, go_on) {
                    Ok(true) => break,
                    Ok(false) => return Handled::Stopped,
                    Err(error) if error.is_retryable() && attempt < TRIES => {}
                    Err(error) => {
                        tracing::warn!(%error, "an item could not be read");
                        row.occurrences.clear();
                        row.begun = false;
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
        part: Option<&InItem>,
        row: &mut ItemRow,
        buffers: &mut ItemBuffers,
        go_on: &mut GoOn<'_>,
    ) -> Result<bool, ConnectorError> {
        row.occurrences.clear();
        let mut opened_at_ms = now().as_raw();
        let mut reader = self.source.open(key)?;
        row.version = reader.version().to_vec();
        row.bytes = reader.size();
        // A part of another version is worth nothing.
        let part = part.filter(|part| part.version == row.version);
        row.begun = part.is_some();
        let ItemBuffers { scratch, chunk } = buffers;
        chunk.resize(CHUNK, 0);

        let size = row.bytes;
        let mut offset = 0;
        let mut stream = match part {
            Some(part) => {
                opened_at_ms = part.opened_at_ms;
                offset = part.mark.read_from();
                self.engine.resume(scratch, Some(key), part.mark)
            }
            None => self.engine.stream(scratch, Some(key)),
        };
        if stream.is_silent() {
            row.skipped = Some("allowed path".to_owned());
            self.name_version(reader.as_ref(), row, opened_at_ms)?;
            return Ok(true);
        }
        loop {
            let next = (CHUNK as u64).min(size.saturating_sub(offset));
            let mark = stream.mark();
            if !go_on(&mut InHand { row, mark, offset, next, opened_at_ms }) {
                return Ok(false);
            }
            let filled = self.fill(reader.as_mut(), offset, chunk)?;
            if offset == 0
                && let Some(reason) = binary_reason(&chunk[..filled])
            {
                row.skipped = Some(format!("binary: {reason}"));
                self.name_version(reader.as_ref(), row, opened_at_ms)?;
                return Ok(true);
            }
            let ItemRow { version, occurrences, .. } = row;
            stream.push(&chunk[..filled], &mut |found| {
                occurrences.push(self.occurrence(key, version, &found));
            });
            offset += filled as u64;
            // Not the size alone: what the kernel makes up as it is read says that it is empty.
            if filled == 0 || filled < chunk.len() && size > 0 && offset >= size {
                break;
            }
        }
        let ItemRow { version, occurrences, .. } = row;
        stream.finish(&mut |found| occurrences.push(self.occurrence(key, version, &found)));
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
