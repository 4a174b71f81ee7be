//! Where to cut what is left of a bucket: at names, and at what is before a `/` in them, taken to hold
//! as much as each other.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};

use gossip_contracts::connector::ConnectorError;
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use object_store::Error;
use object_store::list::PaginatedListOptions;

use crate::Client;
use crate::error::connector_error;
use crate::list::Left;
use crate::open::prefix_of;

/// Requests that a search may make.
const REQUESTS_MAX: usize = 16;
/// Marks for each point that is wanted: enough to choose from.
const MARKS_PER_POINT: usize = 4;

pub(crate) async fn points(
    client: &Client,
    prefix: &str,
    range: ShardSpecRef<'_>,
    cursor: CursorUpdate<'_>,
    want: usize,
) -> Result<Vec<Box<[u8]>>, ConnectorError> {
    let left = Left::of(range, cursor);
    let mut marks = BTreeSet::new();
    let mut folders = VecDeque::from([prefix.to_owned()]);
    for _ in 0..REQUESTS_MAX {
        if marks.len() >= want * MARKS_PER_POINT {
            break;
        }
        let Some(folder) = folders.pop_front() else { break };
        let options = PaginatedListOptions {
            offset: left.offset().filter(|offset| offset.as_str() > folder.as_str()),
            delimiter: Some(Cow::Borrowed("/")),
            ..PaginatedListOptions::default()
        };
        let permit = client.permits.acquire().await.expect("the semaphore is never closed");
        let listed = client.store.list_paginated(prefix_of(&folder), options).await;
        drop(permit);
        let listed = match listed {
            Ok(listed) => listed.result,
            // A name in it cannot be written: there are points elsewhere.
            Err(Error::InvalidPath { .. }) => continue,
            Err(error) => return Err(connector_error("split_points", &error)),
        };
        let inner = listed.common_prefixes.iter().map(|inner| format!("{inner}/"));
        // What lies before the cursor, or behind the end, is not looked into.
        let inner: Vec<String> = inner
            .filter(|inner| left.is_before_end(inner.as_bytes()))
            .filter(|inner| *inner != folder)
            .collect();
        let objects = listed.objects.iter().map(|object| object.location.as_ref().to_owned());
        marks.extend(
            inner
                .iter()
                .cloned()
                .chain(objects)
                .filter(|mark| left.admits(mark.as_bytes()) && mark.as_bytes() > range.start()),
        );
        folders.extend(inner);
    }
    let marks: Vec<String> = marks.into_iter().collect();
    let want = want.min(marks.len());
    let point = |nth: usize| marks[nth * marks.len() / (want + 1)].as_bytes().into();
    let mut points: Vec<Box<[u8]>> = (1..=want).map(point).collect();
    points.dedup();
    Ok(points)
}
