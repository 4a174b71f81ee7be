//! Where things are in etcd.
//!
//! Keys are ASCII paths of segments that have a fixed width or contain no `/`, so that no key of
//! one namespace, tenant or run lies in another's prefix. Ids are in hex, so that key order is id
//! order. `docs/etcd.md` shows the layout.
//!
//! - Y1: no key lies in the range of another namespace, tenant or run.
//! - Y2: two keys are equal only if they name the same thing.
//! - Y3: a shard has one key in each list, whoever holds it and until when: a renewal deletes nothing.

use core::fmt;

use gossip_contracts::identity::{LogicalTime, RunId, ShardId, TenantId, WorkerId};

/// A key of the store.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<u8>);

impl Key {
    fn new(path: String) -> Self {
        Self(path.into_bytes())
    }

    /// The key as etcd sees it, namespace included.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its bytes, owned.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// As `etcdctl` takes it. Keys hold ids, never keys of a source.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// The keys from `start` to before `end`; without an end, the one key `start`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    start: Key,
    end: Option<Key>,
}

impl KeyRange {
    /// One key.
    #[must_use]
    pub fn one(key: &Key) -> Self {
        Self { start: key.clone(), end: None }
    }

    /// Every key below a path that ends in `/`.
    fn below(path: String) -> Self {
        debug_assert!(path.ends_with('/'), "{path} is no directory");
        let start = Key::new(path);
        let mut end = start.clone();
        // The byte after `/`.
        *end.0.last_mut().expect("a path is not empty") = b'/' + 1;
        Self { start, end: Some(end) }
    }

    /// The part of this range from `key` on.
    #[must_use]
    pub fn from(&self, key: Key) -> Self {
        Self { start: key, end: self.end.clone() }
    }

    /// The part of this range behind `key`.
    #[must_use]
    pub fn after(&self, key: &[u8]) -> Self {
        let mut next = key.to_vec();
        next.push(0);
        self.from(Key(next))
    }

    /// The part of this range before `key`.
    #[must_use]
    pub fn until(&self, key: Key) -> Self {
        Self { start: self.start.clone(), end: Some(key) }
    }

    /// The first key that can be in it.
    #[must_use]
    pub fn start(&self) -> &Key {
        &self.start
    }

    /// The key behind the last one, unless this is one key.
    #[must_use]
    pub fn end(&self) -> Option<&Key> {
        self.end.as_ref()
    }

    /// Whether `key` is in it.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        match &self.end {
            Some(end) => self.start.as_bytes() <= key && key < end.as_bytes(),
            None => self.start.as_bytes() == key,
        }
    }
}

/// The longest namespace, in bytes.
pub const NAMESPACE_LEN_MAX: usize = 64;

/// Why a name cannot be a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a namespace has 1 to {NAMESPACE_LEN_MAX} of the characters a-z, A-Z, 0-9, `.`, `_` and `-`"
)]
pub struct InvalidNamespace;

/// The keys of one namespace: coordinators of different namespaces share a cluster without ever
/// seeing each other's runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyspace {
    root: String,
}

impl Keyspace {
    /// The keys below `namespace`.
    pub fn new(namespace: &str) -> Result<Self, InvalidNamespace> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let has_length = (1..=NAMESPACE_LEN_MAX).contains(&namespace.len());
        if !has_length || !namespace.bytes().all(is_allowed) {
            return Err(InvalidNamespace);
        }
        Ok(Self { root: format!("{namespace}/") })
    }

    /// All of its keys: what a role must be allowed to read and write.
    #[must_use]
    pub fn all(&self) -> KeyRange {
        KeyRange::below(self.root.clone())
    }

    /// How many shards all tenants have.
    #[must_use]
    pub fn shard_total(&self) -> Key {
        Key::new(format!("{}shards", self.root))
    }

    /// The runs of every tenant that have not ended.
    #[must_use]
    pub fn open_runs(&self) -> KeyRange {
        KeyRange::below(format!("{}open/", self.root))
    }

    /// The keys of a tenant.
    #[must_use]
    pub fn tenant(&self, tenant: TenantId) -> TenantKeys<'_> {
        TenantKeys { keyspace: self, tenant }
    }

    /// The keys of a run.
    #[must_use]
    pub fn run(&self, tenant: TenantId, run: RunId) -> RunKeys {
        RunKeys {
            open: Key::new(format!("{}open/{tenant}/{:016x}", self.root, run.as_raw())),
            root: format!("{}tenant/{tenant}/run/{:016x}/", self.root, run.as_raw()),
        }
    }
}

/// The keys of one tenant.
#[derive(Clone, Copy, Debug)]
pub struct TenantKeys<'k> {
    keyspace: &'k Keyspace,
    tenant: TenantId,
}

impl TenantKeys<'_> {
    /// All of them but the index of open runs.
    #[must_use]
    pub fn all(&self) -> KeyRange {
        KeyRange::below(format!("{}tenant/{}/", self.keyspace.root, self.tenant))
    }

    /// How many shards the tenant has.
    #[must_use]
    pub fn shard_total(&self) -> Key {
        Key::new(format!("{}tenant/{}/shards", self.keyspace.root, self.tenant))
    }

    /// Its runs, open or not, with all that belongs to them.
    #[must_use]
    pub fn runs(&self) -> KeyRange {
        KeyRange::below(format!("{}tenant/{}/run/", self.keyspace.root, self.tenant))
    }

    /// The list of its runs, open or not.
    #[must_use]
    pub fn run_list(&self) -> KeyRange {
        KeyRange::below(format!("{}tenant/{}/runs/", self.keyspace.root, self.tenant))
    }

    /// A run in that list.
    #[must_use]
    pub fn listed_run(&self, run: RunId) -> Key {
        let (root, tenant) = (&self.keyspace.root, self.tenant);
        Key::new(format!("{root}tenant/{tenant}/runs/{:016x}", run.as_raw()))
    }

    /// Its runs that have not ended.
    #[must_use]
    pub fn open_runs(&self) -> KeyRange {
        KeyRange::below(format!("{}open/{}/", self.keyspace.root, self.tenant))
    }
}

/// Where a run lists a shard: exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// It can be claimed.
    Free,
    /// It is leased, until when the value says.
    Held,
    /// All of its keys are handled.
    Done,
    /// Its keys were handed to its children.
    Split,
    /// It is halted.
    Parked,
}

impl Listed {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Free, Self::Held, Self::Done, Self::Split, Self::Parked];
}

/// The keys of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunKeys {
    root: String,
    open: Key,
}

impl RunKeys {
    fn key(&self, path: fmt::Arguments<'_>) -> Key {
        Key::new(format!("{}{path}", self.root))
    }

    fn below(&self, path: &str) -> KeyRange {
        KeyRange::below(format!("{}{path}", self.root))
    }

    /// All of them but its entry among the open runs.
    #[must_use]
    pub fn all(&self) -> KeyRange {
        self.below("")
    }

    /// A key that the store returned.
    pub(crate) fn named(&self, key: &[u8]) -> Key {
        debug_assert!(self.all().contains(key), "a run's reads find a run's keys");
        Key(key.to_vec())
    }

    /// The run's record.
    #[must_use]
    pub fn record(&self) -> Key {
        self.key(format_args!("record"))
    }

    /// Its status and configuration, which every operation on a shard compares.
    #[must_use]
    pub fn gate(&self) -> Key {
        self.key(format_args!("gate"))
    }

    /// Its entry among the open runs.
    #[must_use]
    pub fn open(&self) -> Key {
        self.open.clone()
    }

    /// A shard's record.
    #[must_use]
    pub fn shard(&self, shard: ShardId) -> Key {
        self.key(format_args!("shard/{:016x}", shard.as_raw()))
    }

    /// Every shard's record.
    #[must_use]
    pub fn shards(&self) -> KeyRange {
        self.below("shard/")
    }

    /// Who holds a shard: the key that ends with its process.
    #[must_use]
    pub fn owner(&self, shard: ShardId) -> Key {
        self.key(format_args!("owner/{:016x}", shard.as_raw()))
    }

    /// Where the run lists a shard.
    #[must_use]
    pub fn listed(&self, listed: Listed, shard: ShardId) -> Key {
        let id = shard.as_raw();
        match listed {
            Listed::Free => self.key(format_args!("free/{:04x}/{id:016x}", place(id))),
            Listed::Held => self.key(format_args!("held/{:04x}/{id:016x}", place(id))),
            Listed::Done => self.key(format_args!("done/{id:016x}")),
            Listed::Split => self.key(format_args!("split/{id:016x}")),
            Listed::Parked => self.key(format_args!("parked/{id:016x}")),
        }
    }

    /// Shards that can be claimed, in an order that says nothing about their ids.
    #[must_use]
    pub fn free(&self) -> KeyRange {
        self.below("free/")
    }

    /// A part of the free shards, `width` of [`PLACES`] wide: from a place on, and what of it would lie
    /// behind the last place, from the first place on.
    #[must_use]
    pub fn free_part(&self, from: u32, width: u32) -> [KeyRange; 2] {
        let to = from + width;
        [self.free_between(from, to), self.free_between(0, to.saturating_sub(PLACES))]
    }

    /// The free shards at places from `from` on, and before `to`.
    #[must_use]
    pub fn free_between(&self, from: u32, to: u32) -> KeyRange {
        self.between("free/", from, to)
    }

    /// Shards that are leased, in an order that says nothing about their ids or deadlines.
    #[must_use]
    pub fn held(&self) -> KeyRange {
        self.below("held/")
    }

    /// The held shards at places from `from` on, and before `to`.
    #[must_use]
    pub fn held_between(&self, from: u32, to: u32) -> KeyRange {
        self.between("held/", from, to)
    }

    fn between(&self, list: &str, from: u32, to: u32) -> KeyRange {
        let at = |place: u32| self.key(format_args!("{list}{place:04x}/"));
        let all = self.below(list);
        let range = if from == 0 { all } else { all.from(at(from)) };
        if to >= PLACES { range } else { range.until(at(to)) }
    }

    /// Shards that are done.
    #[must_use]
    pub fn done(&self) -> KeyRange {
        self.below("done/")
    }

    /// Shards that were replaced by their children.
    #[must_use]
    pub fn split(&self) -> KeyRange {
        self.below("split/")
    }

    /// Shards that are halted.
    #[must_use]
    pub fn parked(&self) -> KeyRange {
        self.below("parked/")
    }

    /// That a worker holds a shard, whether or not its lease is over.
    #[must_use]
    pub fn held_by(&self, worker: WorkerId, shard: ShardId) -> Key {
        self.key(format_args!("worker/{:016x}/{:016x}", worker.as_raw(), shard.as_raw()))
    }

    /// Until when a worker counts as waiting for work.
    #[must_use]
    pub fn waiting(&self, worker: WorkerId) -> Key {
        self.key(format_args!("waiting/{:016x}", worker.as_raw()))
    }

    /// That a worker waits for work, and until when that counts.
    #[must_use]
    pub fn idle(&self, until: LogicalTime, worker: WorkerId) -> Key {
        self.key(format_args!("idle/{:016x}/{:016x}", until.as_raw(), worker.as_raw()))
    }

    /// Every worker that waits for work at `now`.
    #[must_use]
    pub fn idle_at(&self, now: LogicalTime) -> KeyRange {
        // `0` is the byte after `/`.
        self.below("idle/").from(self.key(format_args!("idle/{:016x}0", now.as_raw())))
    }

    /// Every worker that waits for work, or did: both keys of each.
    pub fn all_waiting(&self) -> impl Iterator<Item = KeyRange> + use<> {
        [self.below("waiting/"), self.below("idle/")].into_iter()
    }

    /// What workers hold.
    #[must_use]
    pub fn all_held(&self) -> KeyRange {
        self.below("worker/")
    }

    /// What a worker holds.
    #[must_use]
    pub fn all_held_by(&self, worker: WorkerId) -> KeyRange {
        self.below(&format!("worker/{:016x}/", worker.as_raw()))
    }
}

/// Places in the lists of free and of held shards.
pub const PLACES: u32 = 1 << 16;

/// Where a worker begins to look for a free shard.
#[must_use]
pub fn place_of(worker: WorkerId) -> u32 {
    place(worker.as_raw()).into()
}

/// Where a shard is in the lists.
#[must_use]
pub fn place_of_shard(shard: ShardId) -> u32 {
    place(shard.as_raw()).into()
}

/// Spreads ids over a list, so that workers that begin at different places find different shards. The
/// multiplier is odd, and its high bits are as good as random.
fn place(id: u64) -> u16 {
    (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u16
}

/// The id at the end of a shard's, run's or worker's key.
#[must_use]
pub fn id_at_end(key: &[u8]) -> Option<u64> {
    let (before, digits) = key.split_at_checked(key.len().checked_sub(16)?)?;
    before.ends_with(b"/").then_some(())?;
    parse_hex(digits)
}

/// The tenant in the key of an open run.
#[must_use]
pub fn tenant_of_open_run(key: &[u8]) -> Option<TenantId> {
    let mut segments = key.rsplit(|&byte| byte == b'/');
    let (_run, digits) = (segments.next()?, segments.next()?);
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::try_from(parse_hex(pair)?).ok()?;
    }
    Some(TenantId::from_bytes(bytes))
}

fn parse_hex(digits: &[u8]) -> Option<u64> {
    let is_lower_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    digits.iter().all(is_lower_hex).then_some(())?;
    u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests;
