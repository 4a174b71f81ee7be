//! One item: is it known, can it be read, what is in it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use gossip_archive::{Format, HEAD_SIZE};
use gossip_contracts::connector::{Connector, ConnectorError, ItemReader, PageEntry, Provenance};
use gossip_contracts::identity::{
    FindingId, ItemId, ObjectVersionId, OccurrenceId, RuleFingerprint, RunId, SecretHash,
    TenantSecretKey,
};
use gossip_engine::{Engine, Finding, Origin, Scratch, Silenced, Stream, StreamMark};

use crate::base::BaseSecrets;
use crate::batch::{InProgress, Position};
use crate::clock::now;
use crate::crew::Part;
use crate::findings::{OccurrenceRow, Silence};
use crate::ledger::{ItemRow, LedgerRow};
use crate::partial_item::{PartialAt, PartialItem};
use crate::reason::Reason;
use crate::runs::Scope;
use crate::state::LOCAL_TENANT;
use crate::stats::ScanStats;

/// Bytes read at a time, straight into the engine's buffer.
pub(crate) const CHUNK: usize = 256 << 10;
const _: () = assert!(CHUNK <= Stream::READ_MAX, "what an item is, is told before it is judged");

/// What is the same for all items of a run.
pub(crate) struct ItemContext<'c> {
    pub(crate) source: &'c dyn Connector,
    pub(crate) engine: &'c Engine,
    pub(crate) tenant_key: &'c TenantSecretKey,
    pub(crate) target: &'c [u8],
    pub(crate) scope: Scope,
    pub(crate) run: RunId,
    /// Nothing that earlier runs stored is trusted.
    pub(crate) fresh: bool,
    pub(crate) stats: &'c ScanStats,
    /// The scan is to stop.
    pub(crate) stop: &'c AtomicBool,
}

/// What a listing and the ledger say of an item.
pub(crate) enum Known<'r> {
    /// This run has it already.
    Covered(&'r LedgerRow),
    /// It has not changed since an earlier run.
    Unchanged(&'r LedgerRow),
    /// The source does not offer it for reading.
    NotOffered(ItemRow),
    /// It has to be read.
    MustRead,
}

impl ItemContext<'_> {
    /// Whether an entry has to be read, given its ledger row.
    pub(crate) fn look_at<'r>(
        &self,
        entry: &PageEntry<'_>,
        row: Option<&'r LedgerRow>,
    ) -> Known<'r> {
        if let Some(row) = row
            && !row.failed
            && !entry.version.is_empty()
            && row.version == entry.version
            && (row.run == self.run || !self.fresh)
        {
            return if row.run == self.run { Known::Covered(row) } else { Known::Unchanged(row) };
        }
        let Some(reason) = entry.skip else { return Known::MustRead };
        let mut row = ItemRow::new(entry.key);
        row.path = self.source.shown_path(entry.key);
        let reason = Reason::of_listing(reason);
        if reason.is_failure() {
            // Nobody meant to leave it out, so it is tried again next time.
            row.failed = Some(reason);
            row.keeps_found = true;
        } else {
            row.version = entry.version.to_vec();
            row.skipped = Some(reason);
        }
        Known::NotOffered(row)
    }

    /// The row of an item that cannot be read.
    pub(crate) fn unreadable(&self, key: &[u8], listed: &[u8], error: &ConnectorError) -> ItemRow {
        tracing::warn!(%error, "an item could not be read");
        let mut row = ItemRow::new(key);
        row.path = self.source.shown_path(key);
        let reason = Reason::of_error(error);
        row.failed = Some(reason);
        row.keeps_found = reason != Reason::Vanished;
        row.unread = Some(listed.to_vec());
        row
    }

    /// Counts an item that is done with.
    pub(crate) fn count(&self, row: &ItemRow) {
        ScanStats::add(&self.stats.items, 1);
        ScanStats::add(&self.stats.skipped, u64::from(row.skipped.is_some()));
        ScanStats::add(&self.stats.failed, u64::from(row.failed.is_some()));
        ScanStats::add(&self.stats.findings, row.findings());
    }

    /// Counts an item that has not changed.
    pub(crate) fn count_unchanged(&self, entry: &PageEntry<'_>) {
        ScanStats::add(&self.stats.items, 1);
        ScanStats::add(&self.stats.unchanged, 1);
        ScanStats::add(&self.stats.unchanged_bytes, entry.size);
    }

    /// Opens an item.
    pub(crate) fn open(&self, key: &[u8]) -> Result<OpenItem, ConnectorError> {
        let opened_at_ms = now().as_raw();
        let reader = self.source.open(key)?;
        let subject = Subject {
            key: key.to_vec(),
            path: reader.path().map(<[u8]>::to_vec),
            inner: None,
            identity: reader.identity().map(<[u8]>::to_vec),
            outer: None,
            item: OnceLock::new(),
            version: reader.version().to_vec(),
            opened_at_ms,
            provenance: reader.provenance().map(Arc::new),
            base: OnceLock::new(),
        };
        Ok(OpenItem { subject, reader })
    }

    /// Notes that what was found in an item up to now is committed.
    pub(crate) fn partial_is_committed(&self, row: &mut ItemRow) {
        ScanStats::add(&self.stats.findings, row.findings());
        row.occurrences.clear();
        row.keeps_found = true;
    }

    /// Forgets the version of what changed while it was read, and notes that another may still change
    /// under the same name: either is read again next time.
    pub(crate) fn settle(
        &self,
        reader: &dyn ItemReader,
        row: &mut ItemRow,
        opened_at_ms: u64,
    ) -> Result<(), ConnectorError> {
        row.is_settled = self.source.is_settled(&row.version, opened_at_ms);
        if reader.version_now()? != row.version {
            row.version.clear();
        }
        Ok(())
    }

    /// What is kept of a finding; `None` if an allow-list names the commit that brought it in.
    pub(crate) fn occurrence(
        &self,
        subject: &Subject,
        found: &Finding<'_>,
    ) -> Option<OccurrenceRow> {
        let allowed = subject
            .provenance
            .as_ref()
            .and_then(|from| self.engine.allows_commit(found, &from.commit, subject.path()));
        let is_counted = self.engine.options().report_silenced;
        if allowed.is_some_and(|by| by == Origin::User || !is_counted) {
            return None;
        }
        let item = subject.item(self.target);
        let version = ObjectVersionId::derive(item, &subject.version);
        let rule = found.rule();
        let secret = SecretHash::derive(self.tenant_key, found.secret().expose());
        let finding = FindingId::derive(LOCAL_TENANT, item, rule.fingerprint(), secret);
        let span = found.span();
        let silenced = match found.silenced() {
            Some(Silenced::ByComment) => Some(Silence::Comment),
            Some(_) => Some(Silence::LocalConfig),
            None if allowed.is_some() => Some(Silence::LocalConfig),
            None => {
                let was_there = subject.was_there_before(self, rule.fingerprint(), secret);
                was_there.then_some(Silence::Before)
            }
        };
        Some(OccurrenceRow {
            occurrence: OccurrenceId::derive(finding, version, span.start, span.len),
            finding,
            path: subject.path.clone(),
            inner: subject.inner.clone(),
            secret,
            rule: rule.id().to_owned(),
            fingerprint: rule.fingerprint(),
            description: rule.description().to_owned(),
            severity: found.severity().to_string(),
            confidence: found.confidence().to_string(),
            reason: found.reason().as_str(),
            redacted: found.secret().redact().to_string(),
            start: span.start,
            length: span.len,
            line: found.position().line,
            column: found.position().column,
            end_line: found.end().line,
            end_column: found.end().column,
            before: found.context().before.to_owned(),
            after: found.context().after.to_owned(),
            silenced,
            provenance: subject.provenance.clone(),
        })
    }
}

/// What is known of an item once it is open. No `Debug`: names may be private.
pub(crate) struct Subject {
    pub(crate) key: Vec<u8>,
    /// What rules and reports call it, where that is not its key.
    path: Option<Vec<u8>>,
    /// Of a file in an archive: where there.
    inner: Option<Vec<u8>>,
    /// What its source knows it by, where that is not its key.
    identity: Option<Vec<u8>>,
    /// Of a file in an archive: the archive.
    outer: Option<ItemId>,
    /// Once something was found in it: most items have nothing, and a hash of each takes time.
    item: OnceLock<ItemId>,
    version: Vec<u8>,
    pub(crate) opened_at_ms: u64,
    provenance: Option<Arc<Provenance>>,
    /// What was found in what stood in its place before, once that was asked for.
    base: OnceLock<BaseSecrets>,
}

impl Subject {
    pub(crate) fn path(&self) -> &[u8] {
        self.path.as_deref().unwrap_or(&self.key)
    }

    fn item(&self, target: &[u8]) -> ItemId {
        let inner = self.inner.as_deref().unwrap_or_default();
        let identity = self.identity.as_deref().unwrap_or(&self.key);
        *self.item.get_or_init(|| match self.outer {
            Some(outer) => ItemId::derive(outer.as_bytes(), inner),
            None => ItemId::derive(target, identity),
        })
    }

    /// A file at `inner` in this archive of `target`.
    pub(crate) fn inside(&self, target: &[u8], inner: &[u8]) -> Self {
        Self {
            key: self.key.clone(),
            path: self.path.clone(),
            inner: Some(inner.to_vec()),
            identity: None,
            outer: Some(self.item(target)),
            item: OnceLock::new(),
            version: self.version.clone(),
            opened_at_ms: self.opened_at_ms,
            provenance: self.provenance.clone(),
            base: OnceLock::new(),
        }
    }

    /// Whether what stood in its place before has this secret, too. Of files in archives nobody knows.
    fn was_there_before(
        &self,
        context: &ItemContext<'_>,
        rule: RuleFingerprint,
        secret: SecretHash,
    ) -> bool {
        let base = || BaseSecrets::read(context, &self.key, self.path());
        self.inner.is_none() && self.base.get_or_init(base).has(rule, secret)
    }

    /// Whether what is open is known to be of this version. Where versions have no name, nothing is.
    pub(crate) fn is_version(&self, version: &[u8]) -> bool {
        !version.is_empty() && self.version == version
    }

    pub(crate) const fn has_version(&self) -> bool {
        !self.version.is_empty()
    }

    /// What a token says of it, once something of it was scanned.
    pub(crate) fn partial(&self, opened_at_ms: u64, at: PartialAt) -> PartialItem {
        let (key, version) = (self.key.clone(), self.version.clone());
        PartialItem { key, version, opened_at_ms, at }
    }

    /// The row of the item before anything is read of it, or after `partial` of it.
    pub(crate) fn begin_row(&self, size: u64, partial: Option<&PartialItem>) -> ItemRow {
        let mut row = ItemRow::new(&self.key);
        row.path.clone_from(&self.path);
        row.provenance.clone_from(&self.provenance);
        row.version = self.version.clone();
        row.bytes = size;
        row.keeps_found = partial.is_some();
        row
    }
}

/// Reads the first bytes of an item, as many as tell what it is: a single read may give fewer.
pub(crate) fn read_head(
    reader: &mut dyn ItemReader,
    buf: &mut [u8],
) -> Result<usize, ConnectorError> {
    let size = reader.size();
    let mut len = 0;
    loop {
        let read = reader.read_at(len as u64, &mut buf[len..])?;
        len += read;
        if read == 0 || len >= HEAD_SIZE || (size > 0 && len as u64 >= size) {
            return Ok(len);
        }
    }
}

/// An item of which nothing is read yet.
pub(crate) struct OpenItem {
    pub(crate) subject: Subject,
    pub(crate) reader: Box<dyn ItemReader>,
}

/// What the next piece of an item was.
pub(crate) enum Step {
    /// There is more to read.
    More,
    /// There is no more to read, or to scan.
    End,
    /// The first, of an archive.
    Archive(Format),
}

/// An item that is being read, piece by piece.
pub(crate) struct ItemInProgress<'i> {
    context: &'i ItemContext<'i>,
    subject: &'i Subject,
    reader: Box<dyn ItemReader>,
    stream: Stream<'i>,
    row: ItemRow,
    size: u64,
    /// Bytes up to here were read.
    offset: u64,
    /// When its first byte was read.
    opened_at_ms: u64,
}

impl<'i> ItemInProgress<'i> {
    /// To be read from its start or from where `partial` ends.
    pub(crate) fn begin(
        context: &'i ItemContext<'i>,
        subject: &'i Subject,
        reader: Box<dyn ItemReader>,
        partial: Option<&PartialItem>,
        scratch: &'i mut Scratch,
    ) -> Self {
        let size = reader.size();
        let mut row = subject.begin_row(size, partial);
        let mark = partial.and_then(|partial| match partial.at {
            PartialAt::Mark(mark) => Some(mark),
            PartialAt::Inside(_) => None,
        });
        let path = subject.path();
        let stream = match mark {
            Some(mark) => context.engine.resume(scratch, Some(path), mark),
            None => context.engine.stream(scratch, Some(path)),
        };
        if stream.is_silent() {
            row.skipped = Some(Reason::AllowedPath);
        }
        Self {
            context,
            subject,
            reader,
            stream,
            row,
            size,
            offset: mark.map_or(0, |mark| mark.read_from()),
            opened_at_ms: partial.map_or(subject.opened_at_ms, |partial| partial.opened_at_ms),
        }
    }

    /// Whether it is skipped, for what has been seen of it.
    pub(crate) const fn is_skipped(&self) -> bool {
        self.row.skipped.is_some()
    }

    /// Bytes up to here were read.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Where it could be gone on with by a crew.
    pub(crate) fn mark(&self) -> Option<StreamMark> {
        self.stream.mark()
    }

    /// Whether a crew could read it.
    pub(crate) fn reads_anywhere(&self) -> bool {
        self.reader.reads_anywhere()
    }

    /// Goes on behind a part that a crew has read.
    pub(crate) fn skip(&mut self, part: Part) {
        self.row.occurrences.extend(part.found);
        self.offset = part.mark.read_from();
        self.stream.skip_to(part.mark);
    }

    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// How many bytes the next [`step`](Self::step) reads, if the item is as large as it says.
    pub(crate) fn next_len(&self) -> u64 {
        (CHUNK as u64).min(self.size.saturating_sub(self.offset))
    }

    /// It turned out to be an archive: what its path shows by itself is reported, and the rest is
    /// inside. Gives what was read of it, too.
    pub(crate) fn into_archive(self) -> (Box<dyn ItemReader>, ItemRow, Vec<u8>) {
        let Self { context, subject, reader, stream, mut row, .. } = self;
        let head = stream.buffered().to_vec();
        let occurrences = &mut row.occurrences;
        stream.finish_unread(&mut |found| occurrences.extend(context.occurrence(subject, &found)));
        (reader, row, head)
    }

    /// Reads and scans the next piece.
    pub(crate) fn step(&mut self) -> Result<Step, ConnectorError> {
        let Self { context, subject, reader, stream, row, size, offset, .. } = self;
        let occurrences = &mut row.occurrences;
        let read_next = |room: &mut [u8]| match *offset {
            0 => read_head(&mut **reader, room),
            offset => reader.read_at(offset, room),
        };
        let read = stream.read(CHUNK, read_next, &mut |found| {
            occurrences.extend(context.occurrence(subject, &found));
        })?;
        ScanStats::add(&context.stats.bytes, read as u64);
        if *offset == 0
            && let Some(format) = Format::detect(stream.buffered())
        {
            return Ok(Step::Archive(format));
        }
        if *offset == 0
            && let Some(reason) = Reason::of_content(
                context.source.classifier().kind(subject.path(), stream.buffered()),
            )
        {
            row.skipped = Some(reason);
            return Ok(Step::End);
        }
        *offset += read as u64;
        // Not the size alone: what the kernel makes up as it is read says that it is empty.
        let has_more = read > 0 && (read == CHUNK || *size == 0 || *offset < *size);
        Ok(if has_more { Step::More } else { Step::End })
    }

    /// All of it was read, or it is skipped.
    pub(crate) fn finish(self) -> Result<ItemRow, ConnectorError> {
        let Self { context, subject, reader, stream, mut row, offset, opened_at_ms, .. } = self;
        let is_skipped = row.skipped.is_some();
        let occurrences = &mut row.occurrences;
        let mut on_finding = |found: Finding<'_>| {
            occurrences.extend(context.occurrence(subject, &found));
        };
        if is_skipped {
            // A rule may want a file for its name, whatever is in it.
            stream.finish_unread(&mut on_finding);
        } else {
            stream.finish(&mut on_finding);
            row.bytes = offset;
        }
        context.settle(&*reader, &mut row, opened_at_ms)?;
        Ok(row)
    }
}

impl InProgress for ItemInProgress<'_> {
    fn row(&self) -> &ItemRow {
        &self.row
    }

    fn partial_is_committed(&mut self) {
        self.context.partial_is_committed(&mut self.row);
    }

    fn partial(&self) -> Option<PartialItem> {
        let mark = self.stream.mark()?;
        Some(self.subject.partial(self.opened_at_ms, PartialAt::Mark(mark)))
    }

    fn position(&self) -> Option<Position> {
        self.stream.mark().map(|mark| (0, mark.read_from()))
    }

    fn read_again(&self) -> u64 {
        self.offset.saturating_sub(self.stream.mark().map_or(0, |mark| mark.read_from()))
    }

    fn bytes_done(&self) -> u64 {
        self.offset
    }
}
