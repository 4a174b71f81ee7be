//! Questions to a server: one request, one JSON answer, 30 seconds.

use std::error::Error;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::client::{Request, RequestError, RequestErrorKind};
use async_nats::{Client, HeaderMap, Message, datetime};
use bytes::Bytes;
use serde_json::Value;

use crate::kv::KvError;

/// Longest wait of any operation (N3). A half-dead connection does not fail its requests by itself.
pub(super) const OPERATION_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a wait looks at the connection, and how long an answer may take after it was renewed.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const LOOKS_AFTER_RENEWAL: u32 = 20;

/// A client that can be closed for everyone who has it.
pub(super) struct Link {
    client: Client,
    closed: AtomicBool,
}

impl Link {
    pub(super) fn new(client: Client) -> Self {
        Self { client, closed: AtomicBool::new(false) }
    }

    /// The client, while it is not closed.
    pub(super) fn client(&self) -> Result<&Client, KvError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(KvError::NotConnected);
        }
        Ok(&self.client)
    }

    /// How often a connection was made.
    pub(super) fn connects(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    pub(super) async fn close(&self) -> Result<(), KvError> {
        self.closed.store(true, Ordering::Release);
        // An error means that it is closed already.
        let _ = timed("shutdown", self.client.drain()).await?;
        Ok(())
    }

    /// Waits for an answer, and gives up when the connection that carried the question is gone: the
    /// library would let it wait for ever. A question that was not sent yet is carried by the new
    /// connection, so some time is left to that.
    async fn answer<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, KvError> {
        let connects = self.connects();
        let mut work = pin!(work);
        let mut looks_left = LOOKS_AFTER_RENEWAL;
        loop {
            if let Ok(answer) = tokio::time::timeout(LOOK_INTERVAL, &mut work).await {
                return Ok(answer);
            }
            if self.connects() != connects {
                looks_left -= 1;
            }
            if looks_left == 0 {
                return Err(KvError::ConnectionLost { operation });
            }
        }
    }
}

/// Error codes of the JetStream API.
pub(super) const NO_MESSAGE_FOUND: u64 = 10037;
pub(super) const STREAM_NAME_IN_USE: u64 = 10058;
pub(super) const STREAM_NOT_FOUND: u64 = 10059;
const MESSAGE_TOO_LARGE: u64 = 10054;
/// Of a comparison of versions: the code that names the actual sequence, and the one that does not.
const WRONG_LAST_SEQUENCE: [u64; 2] = [10071, 10164];
const STORE_FAILED: u64 = 10077;

/// The `error` of an answer.
#[derive(Debug)]
pub(super) struct ApiError {
    pub(super) code: u64,
    pub(super) err_code: u64,
    pub(super) description: String,
}

/// Bounds a wait (N3).
pub(super) async fn timed<T>(
    operation: &'static str,
    work: impl Future<Output = T>,
) -> Result<T, KvError> {
    let after_ms = OPERATION_TIMEOUT.as_millis() as u64;
    let waited = tokio::time::timeout(OPERATION_TIMEOUT, work).await;
    waited.map_err(|_| KvError::Timeout { operation, after_ms })
}

/// Asks the JetStream API. The outer error is one of the way, the inner one the server's.
pub(super) async fn ask(
    link: &Link,
    operation: &'static str,
    subject: String,
    body: &Value,
) -> Result<Result<Value, ApiError>, KvError> {
    let request = Request::new().payload(Bytes::from(body.to_string()));
    send(link, operation, format!("$JS.API.{subject}"), request).await
}

/// Appends a message to the log; its revision.
pub(super) async fn publish(
    link: &Link,
    operation: &'static str,
    subject: String,
    headers: HeaderMap,
    payload: Bytes,
) -> Result<u64, KvError> {
    let request = Request::new().payload(payload);
    let request = if headers.is_empty() { request } else { request.headers(headers) };
    let answer = send(link, operation, subject, request).await?;
    let answer = answer.map_err(|error| error.into_kv(operation))?;
    answer["seq"].as_u64().ok_or_else(|| unexpected(operation))
}

/// Asks whoever has a copy of the log. `None` if nobody answers to the subject.
pub(super) async fn ask_copies(
    link: &Link,
    operation: &'static str,
    subject: String,
) -> Result<Option<Message>, KvError> {
    match request(link, operation, subject, Request::new()).await? {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind() == RequestErrorKind::NoResponders => Ok(None),
        Err(error) => Err(failed(operation, &error)),
    }
}

async fn request(
    link: &Link,
    operation: &'static str,
    subject: String,
    request: Request,
) -> Result<Result<Message, RequestError>, KvError> {
    // The time limit is the one around it all: sending can wait too.
    let sent = link.client()?.send_request(subject, request.timeout(None));
    timed(operation, link.answer(operation, sent)).await?
}

async fn send(
    link: &Link,
    operation: &'static str,
    subject: String,
    question: Request,
) -> Result<Result<Value, ApiError>, KvError> {
    let answer = request(link, operation, subject, question).await?;
    let answer = answer.map_err(|error| failed(operation, &error))?;
    let answer: Value =
        serde_json::from_slice(&answer.payload).map_err(|_| unexpected(operation))?;
    let error = &answer["error"];
    if error.is_null() {
        return Ok(Ok(answer));
    }
    Ok(Err(ApiError {
        code: error["code"].as_u64().unwrap_or_default(),
        err_code: error["err_code"].as_u64().unwrap_or_default(),
        description: error["description"].as_str().unwrap_or_default().to_owned(),
    }))
}

fn failed(operation: &'static str, error: &RequestError) -> KvError {
    let cause = match error.kind() {
        RequestErrorKind::TimedOut => "no answer in time".to_owned(),
        RequestErrorKind::NoResponders => {
            "nobody answers: no JetStream, no such bucket, or no leader at the moment".to_owned()
        }
        kind => render(kind, error.source()),
    };
    KvError::Backend { operation, cause }
}

fn render(kind: impl ToString, source: Option<&(dyn Error + 'static)>) -> String {
    match source {
        Some(source) => format!("{}: {source}", kind.to_string()),
        None => kind.to_string(),
    }
}

pub(super) fn unexpected(operation: &'static str) -> KvError {
    KvError::Backend { operation, cause: "the server's answer is not understood".to_owned() }
}

impl ApiError {
    pub(super) fn into_kv(self, operation: &'static str) -> KvError {
        match self.err_code {
            code if WRONG_LAST_SEQUENCE.contains(&code) => KvError::RevisionMismatch,
            STORE_FAILED if self.description.contains("maximum") => {
                KvError::BucketFull(self.description)
            }
            MESSAGE_TOO_LARGE => KvError::BucketFull(self.description),
            _ if self.code == 401 || self.code == 403 => KvError::Unauthorized(self.description),
            _ => KvError::Backend { operation, cause: self.description },
        }
    }
}

/// Unix nanoseconds of a time as the server writes it.
pub(super) fn unix_ns(time: &Value) -> Option<u64> {
    let time = datetime::parse_rfc3339(time.as_str()?).ok()?;
    u64::try_from(time.unix_timestamp_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_server_are_read_to_the_nanosecond() {
        let time = Value::from("2026-11-15T13:00:00.123456789Z");
        assert_eq!(unix_ns(&time), Some(1_794_747_600_123_456_789));
        assert_eq!(unix_ns(&Value::from("yesterday")), None);
        assert_eq!(unix_ns(&Value::Null), None);
    }
}
