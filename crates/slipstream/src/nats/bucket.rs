//! A bucket: how it is made and found, and what its log says about itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{HeaderMap, HeaderName, HeaderValue, Message, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::api::{
    self, ApiError, Link, NO_MESSAGE_FOUND, STREAM_NAME_IN_USE, STREAM_NOT_FOUND, ask, unexpected,
};
use super::consumer;
use super::message::{self, Operation};
use super::settled::{Reading, settled};
use crate::kv::{KvError, KvReader, KvTtl, KvWatcher, KvWriter, LogInfo, Retention};
use crate::stores::{Discard, KvStore, StorageType, StoreConfig};

/// Room that a value leaves for headers in the server's largest message.
const HEADERS_LEN_MAX: usize = 256;

/// How long the server keeps the tombstone of a key that expired. A fold that was away for longer does not
/// learn of it from the log, and lists the bucket.
const MARKER_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Stamps are kept in milliseconds, rounded down: an earlier time claims less.
pub(super) const NS_PER_MS: u64 = 1_000_000;

/// Names in one answer of the server.
const NAMES_MAX: usize = 1024;

/// How long the server remembers message ids, unless messages live shorter.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// One bucket: every role of it.
#[derive(Clone)]
pub(super) struct Bucket {
    inner: Arc<Inner>,
    /// Whether points are read from any copy of the log ([`KvStore::direct_reader`]).
    reads_direct: bool,
}

struct Inner {
    link: Arc<Link>,
    name: String,
    stream: String,
    subject_prefix: String,
    value_len_max: usize,
    ttl: bool,
    /// Whether every copy of the log answers for itself.
    allows_direct: bool,
    /// Whether writes reach the log: those to a mirror go to its origin, if that is in reach.
    is_writable: bool,
    /// The log as it went furthest, if there are copies of it: which one, and how far.
    furthest: Mutex<(u64, u64)>,
}

/// A message that was asked for by itself.
pub(super) struct StoredMessage {
    pub(super) revision: u64,
    pub(super) subject: String,
    pub(super) operation: Operation,
    pub(super) payload: Bytes,
    pub(super) stored_at_ns: u64,
}

impl Bucket {
    /// Makes the bucket, or takes the one that exists.
    ///
    /// The request is our own, and of the answer only the error is looked at: hosted services answer
    /// in shapes of their own. They also refuse by a limit on streams though the bucket exists, and
    /// answer late: in both cases the bucket is looked for.
    pub(super) async fn create(
        link: Arc<Link>,
        name: &str,
        config: &StoreConfig,
    ) -> Result<Self, KvError> {
        const OPERATION: &str = "create bucket";
        if config.ttl && !link.client()?.is_server_compatible(2, 11, 0) {
            return Err(KvError::Unsupported("writes that expire need NATS 2.11"));
        }
        let subject = format!("STREAM.CREATE.KV_{name}");
        let refused = match ask(&link, OPERATION, subject, &stream_config(name, config)).await {
            Ok(Ok(_)) => return Self::open(link, name).await,
            Ok(Err(error)) if may_exist(&error) => error.into_kv(OPERATION),
            Ok(Err(error)) => return Err(error.into_kv(OPERATION)),
            Err(timeout @ KvError::Timeout { .. }) => timeout,
            Err(error) => return Err(error),
        };
        match Self::open(link, name).await {
            Err(KvError::BucketNotFound { .. } | KvError::Timeout { .. }) => Err(refused),
            other => other,
        }
    }

    pub(super) async fn open(link: Arc<Link>, name: &str) -> Result<Self, KvError> {
        let info = stream_info(&link, name).await?;
        let config = &info["config"];
        let payload_max = link.client()?.max_payload();
        let message_max = limit(&config["max_msg_size"]).map_or(payload_max, |max| max as usize);
        let max_history = config["max_msgs_per_subject"].as_i64();
        let inner = Inner {
            link,
            name: name.to_owned(),
            stream: format!("KV_{name}"),
            subject_prefix: format!("$KV.{}.", origin(config).unwrap_or(name)),
            value_len_max: payload_max.min(message_max).saturating_sub(HEADERS_LEN_MAX),
            // With a history, a value that expires uncovers the one before it, without a message.
            ttl: config["allow_msg_ttl"].as_bool() == Some(true) && max_history == Some(1),
            allows_direct: config["allow_direct"].as_bool() == Some(true),
            is_writable: config["mirror"]["external"].is_null(),
            furthest: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner), reads_direct: false })
    }

    pub(super) fn link(&self) -> &Link {
        &self.inner.link
    }

    pub(super) fn stream(&self) -> &str {
        &self.inner.stream
    }

    pub(super) fn value_len_max(&self) -> usize {
        self.inner.value_len_max
    }

    pub(super) fn subject(&self, key: &str) -> String {
        format!("{}{key}", self.inner.subject_prefix)
    }

    pub(super) fn subject_prefix_len(&self) -> usize {
        self.inner.subject_prefix.len()
    }

    pub(super) async fn log_info(&self) -> Result<LogInfo, KvError> {
        Ok(self.reading().await?.log)
    }

    /// The same, of a log that went to `end` when it was of this incarnation.
    pub(super) async fn log_through(&self, incarnation: u64, end: u64) -> Result<LogInfo, KvError> {
        let from = json!({ "seq": end, "next_by_subj": self.subject(">") });
        let stored_at_ms = || async {
            let message = self.message(&from).await?;
            Ok(message.map(|message| message.stored_at_ns / NS_PER_MS))
        };
        settled(incarnation, end, || self.reading(), stored_at_ms).await
    }

    pub(super) async fn reading(&self) -> Result<Reading, KvError> {
        let info = stream_info(self.link(), &self.inner.name).await?;
        let log = log_info(&info).ok_or_else(|| unexpected("bucket state"))?;
        let replicated = info["config"]["num_replicas"].as_u64() > Some(1);
        if replicated {
            let (incarnation, last) = self.furthest();
            let same = incarnation == log.incarnation;
            self.went(log.incarnation, if same { last.max(log.last) } else { log.last });
        }
        Ok(Reading { log, replicated })
    }

    pub(super) fn furthest(&self) -> (u64, u64) {
        *self.inner.furthest.lock().expect("nobody panics with it")
    }

    /// Remembers how far a replicated log is believed to go.
    pub(super) fn went(&self, incarnation: u64, last: u64) {
        *self.inner.furthest.lock().expect("nobody panics with it") = (incarnation, last);
    }

    /// The newest revision of the keys that begin with a prefix (or its whole tokens), as the leader
    /// of the log has it, which was read before; 0 if there is none.
    pub(super) async fn newest(&self, prefix: &str, log: &LogInfo) -> Result<u64, KvError> {
        let parent = consumer::parent(prefix);
        if log.last == 0 {
            return Ok(0);
        }
        // To look for the newest of many keys costs the server something.
        if parent.is_empty() && self.message_at(log.last).await?.is_some() {
            return Ok(log.last);
        }
        Ok(self.last_message(&format!("{parent}>")).await?.map_or(0, |last| last.revision))
    }

    /// The message at a revision, as its leader has it.
    pub(super) async fn message_at(&self, revision: u64) -> Result<Option<StoredMessage>, KvError> {
        self.message(&json!({ "seq": revision })).await
    }

    /// The last message of a key, as its leader has it: a follower may lag behind the caller's own
    /// writes.
    pub(super) async fn last_message(&self, key: &str) -> Result<Option<StoredMessage>, KvError> {
        self.message(&json!({ "last_by_subj": self.subject(key) })).await
    }

    /// The last message of a key, for a reader.
    pub(super) async fn point(&self, key: &str) -> Result<Option<StoredMessage>, KvError> {
        match self.reads_direct {
            true => self.last_message_of_a_copy(key).await,
            false => self.last_message(key).await,
        }
    }

    /// The last message of a key, as any copy of the log has it.
    async fn last_message_of_a_copy(&self, key: &str) -> Result<Option<StoredMessage>, KvError> {
        const OPERATION: &str = "direct read";
        let subject = format!("$JS.API.DIRECT.GET.{}.{}", self.inner.stream, self.subject(key));
        let Some(answer) = api::ask_copies(self.link(), OPERATION, subject).await? else {
            // The bucket is gone, or no longer allows it.
            return self.last_message(key).await;
        };
        match answer.status {
            Some(StatusCode::NOT_FOUND) => Ok(None),
            Some(_) => Err(unexpected(OPERATION)),
            None => copied_message(answer).map(Some).ok_or_else(|| unexpected(OPERATION)),
        }
    }

    async fn message(&self, which: &Value) -> Result<Option<StoredMessage>, KvError> {
        const OPERATION: &str = "read";
        let subject = format!("STREAM.MSG.GET.{}", self.inner.stream);
        match ask(self.link(), OPERATION, subject, which).await? {
            Ok(answer) => match stored_message(&answer["message"]) {
                Some(message) => Ok(Some(message)),
                None => Err(unexpected(OPERATION)),
            },
            Err(error) if error.err_code == NO_MESSAGE_FOUND => Ok(None),
            Err(error) if error.err_code == STREAM_NOT_FOUND => Err(self.not_found()),
            Err(error) => Err(error.into_kv(OPERATION)),
        }
    }

    pub(super) fn not_found(&self) -> KvError {
        KvError::BucketNotFound { bucket: self.inner.name.clone() }
    }
}

impl KvStore for Bucket {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn reader(&self) -> Arc<dyn KvReader> {
        Arc::new(self.clone())
    }

    fn direct_reader(&self) -> Option<Arc<dyn KvReader>> {
        let direct = || Self { reads_direct: true, ..self.clone() };
        self.inner.allows_direct.then(|| Arc::new(direct()) as Arc<dyn KvReader>)
    }

    fn watcher(&self) -> Option<Arc<dyn KvWatcher>> {
        Some(Arc::new(self.clone()))
    }

    fn writer(&self) -> Option<Arc<dyn KvWriter>> {
        self.inner.is_writable.then(|| Arc::new(self.clone()) as Arc<dyn KvWriter>)
    }

    fn ttl(&self) -> Option<Arc<dyn KvTtl>> {
        let can = self.inner.ttl && self.inner.is_writable;
        can.then(|| Arc::new(self.clone()) as Arc<dyn KvTtl>)
    }
}

/// The bucket that a mirror has its messages from, under the subjects of that one. A transformation of
/// subjects may give them others, which then are the mirror's own.
fn origin(config: &Value) -> Option<&str> {
    let mirror = &config["mirror"];
    let transforms = mirror["subject_transforms"].as_array().is_some_and(|some| !some.is_empty());
    let name = mirror["name"].as_str()?.strip_prefix("KV_")?;
    (!transforms).then_some(name)
}

fn may_exist(error: &ApiError) -> bool {
    let in_use = error.err_code == STREAM_NAME_IN_USE || error.code == STREAM_NAME_IN_USE;
    in_use || (error.code == 400 && error.description.contains("maximum number of streams"))
}

fn stream_config(name: &str, config: &StoreConfig) -> Value {
    let max_age = config.max_age.unwrap_or_default();
    let duplicate_window = match config.max_age {
        Some(max_age) => max_age.min(DUPLICATE_WINDOW),
        None => DUPLICATE_WINDOW,
    };
    let mut stream = json!({
        "name": format!("KV_{name}"),
        "subjects": [format!("$KV.{name}.>")],
        "retention": "limits",
        "max_msgs_per_subject": config.max_history,
        "max_bytes": config.max_bytes.map_or(-1, |max| i64::try_from(max).unwrap_or(i64::MAX)),
        "max_age": max_age.as_nanos() as u64,
        "max_msgs": -1,
        "max_consumers": -1,
        "storage": match config.storage {
            StorageType::File => "file",
            StorageType::Memory => "memory",
        },
        "discard": match config.discard {
            Discard::New => "new",
            Discard::Old => "old",
        },
        "num_replicas": config.num_replicas,
        "duplicate_window": duplicate_window.as_nanos() as u64,
        "allow_rollup_hdrs": true,
        "deny_delete": true,
        "deny_purge": false,
        "allow_direct": true,
    });
    if config.ttl {
        stream["allow_msg_ttl"] = true.into();
        stream["subject_delete_marker_ttl"] = (MARKER_TTL.as_nanos() as u64).into();
    }
    stream
}

/// The names of all buckets, in order.
pub(super) async fn names(link: &Link) -> Result<Vec<String>, KvError> {
    const OPERATION: &str = "list buckets";
    let mut names = Vec::new();
    // The server gives out so many at a time.
    for offset in (0..).step_by(NAMES_MAX) {
        let page = json!({ "offset": offset });
        let answer = ask(link, OPERATION, "STREAM.NAMES".to_owned(), &page).await?;
        let answer = answer.map_err(|error| error.into_kv(OPERATION))?;
        let streams = answer["streams"].as_array().map_or(&[][..], Vec::as_slice);
        let streams = streams.iter().filter_map(Value::as_str);
        names.extend(streams.filter_map(|stream| stream.strip_prefix("KV_")).map(str::to_owned));
        let total = answer["total"].as_u64().ok_or_else(|| unexpected(OPERATION))?;
        if offset as u64 + NAMES_MAX as u64 >= total {
            break;
        }
    }
    names.sort_unstable();
    Ok(names)
}

async fn stream_info(link: &Link, bucket: &str) -> Result<Value, KvError> {
    const OPERATION: &str = "bucket state";
    let subject = format!("STREAM.INFO.KV_{bucket}");
    match ask(link, OPERATION, subject, &json!({})).await? {
        Ok(info) => Ok(info),
        Err(error) if error.err_code == STREAM_NOT_FOUND => {
            Err(KvError::BucketNotFound { bucket: bucket.to_owned() })
        }
        Err(error) => Err(error.into_kv(OPERATION)),
    }
}

/// A limit that is set; the server writes -1 or 0 for none.
fn limit(value: &Value) -> Option<u64> {
    value.as_i64().filter(|limit| *limit > 0).map(|limit| limit as u64)
}

fn log_info(info: &Value) -> Option<LogInfo> {
    let (config, state) = (&info["config"], &info["state"]);
    let retention = Retention {
        max_age: limit(&config["max_age"]).map(Duration::from_nanos),
        max_bytes: limit(&config["max_bytes"]),
        max_messages: limit(&config["max_msgs"]),
        discards_oldest: config["discard"].as_str()? == "old",
        per_message_ttl: config["allow_msg_ttl"].as_bool().unwrap_or(false),
        marker_ttl: limit(&config["subject_delete_marker_ttl"]).map(Duration::from_nanos),
    };
    let last = state["last_seq"].as_u64()?;
    // An empty log tells its floor as one past its head, or as zero when it is new.
    let first = match state["messages"].as_u64()? {
        0 => last + 1,
        _ => state["first_seq"].as_u64()?,
    };
    let incarnation = api::unix_ns(&info["created"])?;
    // An empty log does not say.
    let subjects = state["num_subjects"].as_u64().unwrap_or_default();
    // Servers that do not say have no tombstones that expire, either.
    let read_at_ms = api::unix_ns(&info["ts"]).unwrap_or_default() / NS_PER_MS;
    Some(LogInfo { incarnation, first, last, retention, subjects, read_at_ms })
}

fn stored_message(message: &Value) -> Option<StoredMessage> {
    let decode = |part: &Value| STANDARD.decode(part.as_str().unwrap_or_default()).ok();
    let headers = String::from_utf8(decode(&message["hdrs"])?).ok()?;
    Some(StoredMessage {
        revision: message["seq"].as_u64()?,
        subject: message["subject"].as_str()?.to_owned(),
        operation: message::operation(Some(&parse_headers(&headers))),
        payload: decode(&message["data"])?.into(),
        stored_at_ns: api::unix_ns(&message["time"])?,
    })
}

/// The answer to a direct read is the message itself, with where it was in headers.
fn copied_message(answer: Message) -> Option<StoredMessage> {
    let headers = answer.headers.as_ref()?;
    let header = |name: &str| Some(headers.get(name)?.as_str());
    Some(StoredMessage {
        revision: header("Nats-Sequence")?.parse().ok()?,
        subject: header("Nats-Subject")?.to_owned(),
        operation: message::operation(Some(headers)),
        stored_at_ns: api::unix_ns(&header("Nats-Time-Stamp")?.into())?,
        payload: answer.payload,
    })
}

fn parse_headers(text: &str) -> HeaderMap {
    // The first line is the version's.
    let lines = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    let named = lines.filter_map(|(name, value)| {
        Some((name.parse::<HeaderName>().ok()?, HeaderValue::from(value.trim())))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(state: Value) -> Value {
        json!({
            "created": "2026-11-15T13:00:00.000000001Z",
            "config": { "max_age": 5_000_000_000u64, "max_bytes": -1, "max_msgs": -1, "discard": "old" },
            "state": state,
        })
    }

    #[test]
    fn the_floor_of_an_empty_log_is_one_past_its_head() {
        let new = info(json!({ "messages": 0, "first_seq": 0, "last_seq": 0 }));
        let log = log_info(&new).unwrap();
        assert_eq!((log.first, log.last), (1, 0));
        assert_eq!(log.retention.max_age, Some(Duration::from_secs(5)));
        assert_eq!(log.retention.max_bytes, None);
        assert!(log.retention.discards_oldest);
        let emptied = info(json!({ "messages": 0, "first_seq": 8, "last_seq": 7 }));
        assert_eq!(log_info(&emptied).unwrap().first, 8);
        let some = info(json!({ "messages": 2, "first_seq": 3, "last_seq": 7 }));
        assert_eq!(log_info(&some).unwrap().first, 3);
    }

    #[test]
    fn an_answer_without_its_parts_is_not_understood() {
        assert!(log_info(&json!({})).is_none());
        assert!(stored_message(&json!({})).is_none());
        assert!(stored_message(&json!({ "hdrs": "%", "seq": 1 })).is_none());
    }

    #[test]
    fn a_mirror_has_the_subjects_of_its_origin_unless_they_are_changed() {
        assert_eq!(origin(&json!({})), None);
        assert_eq!(origin(&json!({ "mirror": { "name": "KV_b" } })), Some("b"));
        let changed = json!([{ "src": "$KV.b.>", "dest": "$KV.c.>" }]);
        let mirror = json!({ "mirror": { "name": "KV_b", "subject_transforms": changed } });
        assert_eq!(origin(&mirror), None);
    }

    #[test]
    fn a_stored_message_says_what_it_does() {
        let message = json!({
            "subject": "$KV.b.k",
            "seq": 4,
            "hdrs": STANDARD.encode("NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"),
            "time": "2026-11-15T13:00:00Z",
        });
        let message = stored_message(&message).unwrap();
        assert_eq!((message.revision, message.operation), (4, Operation::Delete));
        assert!(message.payload.is_empty());
    }

    #[test]
    fn only_answers_that_leave_room_for_the_bucket_are_looked_into() {
        let error = |code, err_code, description: &str| ApiError {
            code,
            err_code,
            description: description.into(),
        };
        assert!(may_exist(&error(400, 10058, "stream name already in use")));
        assert!(may_exist(&error(10058, 0, "in use")));
        assert!(may_exist(&error(400, 10026, "maximum number of streams reached")));
        assert!(!may_exist(&error(400, 10052, "invalid configuration")));
        assert!(!may_exist(&error(500, 10026, "maximum number of streams reached")));
    }
}
