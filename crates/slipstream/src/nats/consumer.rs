//! An ephemeral push consumer, and the proof that nothing it sent was lost (N1).

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use async_nats::{Message, StatusCode, Subject, Subscriber};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep};

use super::ack::{Ack, AckReader};
use super::api::{STREAM_NOT_FOUND, ask, timed, unexpected};
use super::bucket::Bucket;
use crate::kv::{KvError, WatchScope};
use crate::validate;

const HEARTBEAT: Duration = Duration::from_secs(2);
const SILENCE_MAX: Duration = HEARTBEAT.saturating_mul(3);

/// While more than this is to come, a caller that has read everything sleeps for a moment instead of
/// waiting for the next message: to be woken for each costs more than to read it.
const CATCH_UP_PENDING_MIN: u64 = 2048;
const CATCH_UP_SLEEP: Duration = Duration::from_millis(1);

/// Values of so many bytes are a chunk, however few they are.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Where a consumer begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    /// With the last message of each key.
    State,
    /// At a revision.
    At(u64),
}

/// Which messages a consumer sends, of a scope.
struct Filter {
    subjects: Vec<String>,
    /// Whether these are the scope's, and not more.
    exact: bool,
}

impl Filter {
    fn of(bucket: &Bucket, scope: &WatchScope) -> Result<Self, KvError> {
        let prefixes = scope.prefixes();
        if prefixes.is_empty() {
            return Err(KvError::InvalidKey("a scope needs a prefix"));
        }
        prefixes.iter().try_for_each(|prefix| validate::check_prefix(prefix))?;
        let exact = prefixes.iter().all(|prefix| parent(prefix) == *prefix);
        let parents = prefixes.iter().map(|prefix| parent(prefix).to_owned()).collect();
        let parents = WatchScope::Prefixes(parents);
        let subjects = parents.prefixes().into_iter();
        let subjects = subjects.map(|parent| bucket.subject(&format!("{parent}>"))).collect();
        Ok(Self { subjects, exact })
    }
}

/// What of a prefix the server can select by: whole tokens.
pub(super) fn parent(prefix: &str) -> &str {
    &prefix[..prefix.rfind('.').map_or(0, |dot| dot + 1)]
}

pub(super) struct Consumer {
    bucket: Bucket,
    subscriber: Subscriber,
    name: String,
    /// Messages that there were to send when it was made.
    total: u64,
    exact: bool,
    /// Messages received.
    received: u64,
    acks: AckReader,
    /// Much is to come, and nothing was there.
    sleep_first: bool,
    last_sign_at: Instant,
    /// Fires when it may have been silent for too long.
    silence: Pin<Box<Sleep>>,
    /// The server waits for an answer here before it sends more.
    flow_reply: Option<Subject>,
}

const OPERATION: &str = "create consumer";
/// How long an election may keep an answer from coming; distant servers are slow, too.
const ASK_AGAIN_AFTER: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(8)];

/// Messages are missing, or may be. The consumer is of no more use.
#[derive(Debug)]
pub(super) struct Lost(pub(super) String);

/// What [`Consumer::receive`] brought.
pub(super) enum Received {
    /// Messages; the position of the last one.
    Messages(Ack),
    /// Nothing: everything that was sent had been received, and the server has nothing more.
    Idle,
}

impl Consumer {
    /// Makes a consumer. A cluster without a leader forgets the question, so it is asked again; what
    /// an earlier one may have made goes away by itself, as nobody listens to it.
    pub(super) async fn create(
        bucket: &Bucket,
        scope: &WatchScope,
        start: Start,
        headers_only: bool,
    ) -> Result<Self, KvError> {
        let created = async {
            for patience in ASK_AGAIN_AFTER {
                let created = Self::try_create(bucket, scope, start, headers_only);
                if let Ok(answered) = tokio::time::timeout(patience, created).await {
                    return answered;
                }
            }
            Self::try_create(bucket, scope, start, headers_only).await
        };
        timed(OPERATION, created).await?
    }

    /// Subscribes, then makes the consumer (N2).
    async fn try_create(
        bucket: &Bucket,
        scope: &WatchScope,
        start: Start,
        headers_only: bool,
    ) -> Result<Self, KvError> {
        let filter = Filter::of(bucket, scope)?;
        let client = bucket.link().client()?;
        let inbox = client.new_inbox();
        let subscribed = timed("subscribe", client.subscribe(inbox.clone())).await?;
        let subscriber = subscribed.map_err(|error| KvError::Backend {
            operation: "subscribe",
            cause: error.to_string(),
        })?;
        let request = json!({
            "stream_name": bucket.stream(),
            "config": consumer_config(&inbox, &filter, start, headers_only),
        });
        let subject = format!("CONSUMER.CREATE.{}", bucket.stream());
        let info = match ask(bucket.link(), OPERATION, subject, &request).await? {
            Ok(info) => info,
            Err(error) if error.err_code == STREAM_NOT_FOUND => return Err(bucket.not_found()),
            Err(error) => return Err(error.into_kv(OPERATION)),
        };
        let state = ConsumerState::of(&info).ok_or_else(|| unexpected(OPERATION))?;
        Ok(Self {
            bucket: bucket.clone(),
            subscriber,
            name: info["name"].as_str().ok_or_else(|| unexpected(OPERATION))?.to_owned(),
            total: state.sent + state.pending,
            exact: filter.exact,
            received: 0,
            acks: AckReader::default(),
            sleep_first: false,
            last_sign_at: Instant::now(),
            silence: Box::pin(tokio::time::sleep(SILENCE_MAX)),
            flow_reply: None,
        })
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Whether every message is of the scope; if not, the caller looks at the keys.
    pub(super) fn exact(&self) -> bool {
        self.exact
    }

    /// Waits for messages and hands over those that are there, at most `max`, and none after
    /// [`CHUNK_BYTES_MAX`].
    ///
    /// Cancel safe: nothing is taken before the last await.
    pub(super) async fn receive(
        &mut self,
        max: usize,
        mut take: impl FnMut(Message, Ack) -> Result<(), Lost>,
    ) -> Result<Received, Lost> {
        let mut bytes = 0;
        // Before anything else: a server that waits for it sends nothing.
        self.answer_flow_control().await?;
        self.catch_up().await;
        let mut last = None;
        let mut idle = false;
        while last.is_none() && !idle {
            self.answer_flow_control().await?;
            let mut next = Some(self.wait().await?);
            let mut taken = 0;
            while let Some(message) = next {
                let message = message.ok_or_else(|| Lost("the connection was closed".into()))?;
                if message.status.is_some() {
                    idle = self.status(&message)?;
                } else {
                    let ack = self.count(&message)?;
                    bytes += message.payload.len();
                    take(message, ack)?;
                    last = Some(ack);
                    taken += 1;
                }
                // The scheduler's budget is looked at once for all of them, in `catch_up`.
                let ready = tokio::task::unconstrained(self.subscriber.next());
                let enough = taken >= max || bytes >= CHUNK_BYTES_MAX;
                next = if enough { None } else { ready.now_or_never() };
            }
            let ran_dry = taken < max && bytes < CHUNK_BYTES_MAX;
            self.sleep_first =
                ran_dry && last.is_some_and(|ack| ack.pending > CATCH_UP_PENDING_MIN);
        }
        Ok(last.map_or(Received::Idle, Received::Messages))
    }

    async fn catch_up(&mut self) {
        tokio::task::coop::consume_budget().await;
        if self.sleep_first {
            tokio::time::sleep(CATCH_UP_SLEEP).await;
            self.sleep_first = false;
        }
    }

    /// Waits for a message, or for the silence to be too long.
    async fn wait(&mut self) -> Result<Option<Message>, Lost> {
        let message = poll_fn(|cx| {
            if let Poll::Ready(message) = self.subscriber.poll_next_unpin(cx) {
                return Poll::Ready(Ok(message));
            }
            // One timer for many messages: it is moved when it fires, not when one comes.
            while self.silence.as_mut().poll(cx).is_ready() {
                let silent_at = self.last_sign_at + SILENCE_MAX;
                if silent_at <= Instant::now() {
                    return Poll::Ready(Err(Lost("the server is silent".into())));
                }
                self.silence.as_mut().reset(silent_at);
            }
            Poll::Pending
        });
        let message = message.await?;
        self.last_sign_at = Instant::now();
        Ok(message)
    }

    /// Counts a message of the log.
    fn count(&mut self, message: &Message) -> Result<Ack, Lost> {
        let ack = message.reply.as_ref().and_then(|reply| self.acks.read(reply));
        let ack = ack.ok_or_else(|| Lost("a message does not say where it stands".into()))?;
        self.received += 1;
        if ack.consumer_sequence != self.received {
            return Err(Lost(format!(
                "message {} of the consumer came where {} was due",
                ack.consumer_sequence, self.received
            )));
        }
        Ok(ack)
    }

    /// A message of the server's own: a heartbeat, or the wish to be answered. Whether the server
    /// has nothing to send.
    fn status(&mut self, message: &Message) -> Result<bool, Lost> {
        if message.status != Some(StatusCode::IDLE_HEARTBEAT) {
            let description = message.description.as_deref().unwrap_or("no reason given");
            return Err(Lost(format!("the server ended the consumer: {description}")));
        }
        if let Some(reply) = &message.reply {
            self.flow_reply = Some(reply.clone());
            return Ok(false);
        }
        let header = |name: &str| message.headers.as_ref().and_then(|headers| headers.get(name));
        let stalled = header("Nats-Consumer-Stalled");
        if let Some(reply) = stalled {
            self.flow_reply = Some(reply.as_str().into());
        }
        let sent = header("Nats-Last-Consumer").and_then(|sent| sent.as_str().parse::<u64>().ok());
        match sent {
            Some(sent) if sent > self.received => {
                Err(Lost(format!("{} of {sent} messages were received", self.received)))
            }
            _ => Ok(stalled.is_none()),
        }
    }

    async fn answer_flow_control(&mut self) -> Result<(), Lost> {
        let Some(reply) = self.flow_reply.clone() else { return Ok(()) };
        let closed = |_| Lost("the connection was closed".into());
        let client = self.bucket.link().client().map_err(closed)?;
        match timed("flow control", client.publish(reply, Bytes::new())).await {
            Ok(Ok(())) => {
                self.flow_reply = None;
                Ok(())
            }
            _ => Err(Lost("the connection takes no messages".into())),
        }
    }

    /// What the server says about the consumer now.
    pub(super) async fn state(&self) -> Result<ConsumerState, KvError> {
        const OPERATION: &str = "consumer state";
        let subject = format!("CONSUMER.INFO.{}.{}", self.bucket.stream(), self.name);
        let info = ask(self.bucket.link(), OPERATION, subject, &json!({})).await?;
        let info = info.map_err(|error| error.into_kv(OPERATION))?;
        ConsumerState::of(&info).ok_or_else(|| unexpected(OPERATION))
    }

    /// Has the server drop the consumer now; it would find out by itself in some seconds.
    pub(super) async fn end(self) {
        let subject = format!("$JS.API.CONSUMER.DELETE.{}.{}", self.bucket.stream(), self.name);
        // The answer is of no interest.
        let Ok(client) = self.bucket.link().client() else { return };
        let ended = client.publish_with_reply(subject, client.new_inbox(), Bytes::new());
        if let Err(error) = ended.await {
            tracing::debug!(%error, "a consumer was left to expire");
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ConsumerState {
    /// Messages sent.
    pub(super) sent: u64,
    /// Revision of the last one; 0 if none.
    pub(super) last_sent: u64,
    /// Messages to send.
    pub(super) pending: u64,
}

impl ConsumerState {
    fn of(info: &Value) -> Option<Self> {
        let delivered = &info["delivered"];
        let sent = delivered["consumer_seq"].as_u64()?;
        // Before the first message this is where the consumer begins.
        let last_sent = if sent == 0 { 0 } else { delivered["stream_seq"].as_u64()? };
        Some(Self { sent, last_sent, pending: info["num_pending"].as_u64()? })
    }
}

fn consumer_config(inbox: &str, filter: &Filter, start: Start, headers_only: bool) -> Value {
    let mut config = json!({
        "deliver_subject": inbox,
        // With acknowledgements the server stops after a thousand that are missing.
        "ack_policy": "none",
        "replay_policy": "instant",
        "flow_control": true,
        "idle_heartbeat": HEARTBEAT.as_nanos() as u64,
        "headers_only": headers_only,
        "mem_storage": true,
        "num_replicas": 1,
    });
    match start {
        Start::State => config["deliver_policy"] = "last_per_subject".into(),
        Start::At(revision) => {
            config["deliver_policy"] = "by_start_sequence".into();
            config["opt_start_seq"] = revision.into();
        }
    }
    match filter.subjects.as_slice() {
        [subject] => config["filter_subject"] = subject.as_str().into(),
        subjects => config["filter_subjects"] = subjects.into(),
    }
    config
}
