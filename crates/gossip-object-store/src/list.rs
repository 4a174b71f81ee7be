//! Listing objects in the order of their names.

use gossip_contracts::connector::{ConnectorError, Page, PageEntry, SkipReason};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use object_store::list::{PaginatedListOptions, PaginatedListResult};

use crate::Client;
use crate::error::connector_error;
use crate::open::prefix_of;

/// What is left of a range behind a cursor.
pub(crate) struct Left<'r> {
    range: ShardSpecRef<'r>,
    last: Option<&'r [u8]>,
}

impl<'r> Left<'r> {
    pub(crate) fn of(range: ShardSpecRef<'r>, cursor: CursorUpdate<'r>) -> Self {
        Self { range, last: cursor.last_key().filter(|last| *last >= range.start()) }
    }

    pub(crate) fn admits(&self, key: &[u8]) -> bool {
        self.range.contains(key) && self.last.is_none_or(|last| key > last)
    }

    pub(crate) fn is_before_end(&self, key: &[u8]) -> bool {
        self.range.end().is_empty() || key < self.range.end()
    }

    /// A name behind which everything is listed that is left, and little else. Not the last key
    /// itself: some stores, asked for what is behind the name of a folder, pass over all that is in
    /// it.
    pub(crate) fn offset(&self) -> Option<String> {
        let from = self.last.unwrap_or(self.range.start());
        str::from_utf8(from).ok().and_then(|from| before(from.trim_end_matches('/')))
    }
}

/// A name before `name`, with next to nothing between them; `None` is the beginning.
fn before(name: &str) -> Option<String> {
    let last = name.chars().next_back()?;
    let rest = &name[..name.len() - last.len_utf8()];
    let lower = (0x20..u32::from(last)).next_back().map(|code| match char::from_u32(code) {
        // It would be another folder.
        Some('/') => '.',
        Some(lower) => lower,
        // Surrogates are no characters.
        None => '\u{d7ff}',
    });
    match lower {
        Some(lower) => Some(format!("{rest}{lower}{}", char::MAX)),
        None => Some(rest.to_owned()).filter(|rest| !rest.is_empty()),
    }
}

pub(crate) async fn list(
    client: &Client,
    prefix: &str,
    range: ShardSpecRef<'_>,
    cursor: CursorUpdate<'_>,
    max_entries: usize,
    page: &mut Page,
) -> Result<(), ConnectorError> {
    if max_entries == 0 {
        page.finish(false, None);
        return Ok(());
    }
    let left = Left::of(range, cursor);
    let mut token = cursor.token().and_then(|token| str::from_utf8(token).ok().map(str::to_owned));
    let mut offset = left.offset();
    let mut is_first = true;
    loop {
        let asked = token.clone();
        let ask = |token, offset| request(client, prefix, token, offset, max_entries);
        let listed = match ask(token.take(), offset.clone()).await {
            // The cursor's token may be no longer good.
            Err(_) if is_first && asked.is_some() => ask(None, offset.clone()).await?,
            listed => listed?,
        };
        is_first = false;
        let listed = match listed {
            Listed::Page(listed) => listed,
            Listed::Unnameable(name) => {
                let key = name.as_bytes();
                if left.admits(key) {
                    let skip = Some(SkipReason::Unreadable);
                    page.push(PageEntry { key, version: b"", size: 0, skip });
                }
                if !page.is_empty() || !left.is_before_end(key) {
                    page.finish(!left.is_before_end(key), None);
                    return Ok(());
                }
                // It was handled before: what is left comes after it.
                offset = Some(name);
                continue;
            }
        };
        let is_past_end = add(&listed, &left, page)?;
        match listed.page_token {
            Some(next) if !is_past_end => {
                if !page.is_empty() {
                    page.finish(false, Some(next.into_bytes()));
                    return Ok(());
                }
                // Nothing of it was wanted.
                token = Some(next);
            }
            _ => {
                page.finish(true, None);
                return Ok(());
            }
        }
    }
}

/// Adds what is wanted of a page; whether the end was passed.
fn add(
    listed: &PaginatedListResult,
    left: &Left<'_>,
    page: &mut Page,
) -> Result<bool, ConnectorError> {
    let mut before: Option<&[u8]> = None;
    // Markers of folders lose the `/` at their end here, and with it their order. They are empty.
    for object in listed.result.objects.iter().filter(|object| object.size > 0) {
        let key = object.location.as_ref().as_bytes();
        if before.is_some_and(|before| before >= key) {
            let message = "the store lists names out of order".to_owned();
            return Err(ConnectorError::Permanent { operation: "list", message });
        }
        before = Some(key);
        if !left.is_before_end(key) {
            return Ok(true);
        }
        if left.admits(key) {
            let version = object.e_tag.as_deref().unwrap_or_default().as_bytes();
            page.push(PageEntry { key, version, size: object.size, skip: None });
        }
    }
    Ok(false)
}

/// What a store lists next.
enum Listed {
    Page(PaginatedListResult),
    /// An object with a name that our library has no way to write: nobody can ask for it.
    Unnameable(String),
}

/// A name that cannot be written makes the whole answer an error, so fewer and fewer are asked for,
/// until it is not among them or alone.
async fn request(
    client: &Client,
    prefix: &str,
    token: Option<String>,
    offset: Option<String>,
    max_entries: usize,
) -> Result<Listed, ConnectorError> {
    let mut max_keys = max_entries;
    loop {
        let options = PaginatedListOptions {
            offset: offset.clone().filter(|_| token.is_none()),
            max_keys: Some(max_keys),
            page_token: token.clone(),
            ..PaginatedListOptions::default()
        };
        let permit = client.permits.acquire().await.expect("the semaphore is never closed");
        let listed = client.store.list_paginated(prefix_of(prefix), options).await;
        drop(permit);
        match listed {
            Ok(listed) => return Ok(Listed::Page(listed)),
            Err(error) => match unnameable(&error) {
                Some(name) if max_keys == 1 => return Ok(Listed::Unnameable(name)),
                Some(_) => max_keys /= 2,
                None => return Err(connector_error("list", &error)),
            },
        }
    }
}

/// The name for which an answer could not be understood, if that is the reason.
fn unnameable(error: &object_store::Error) -> Option<String> {
    use object_store::path::Error::{BadSegment, EmptySegment};
    match error {
        object_store::Error::InvalidPath {
            source: EmptySegment { path } | BadSegment { path, .. },
        } => Some(path.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_just_before_another_is_before_it_and_behind_all_that_is_before() {
        for name in ["a", "0", "a/b5", "b ", "é", "\u{e000}", "x\u{10ffff}"] {
            let before = before(name).unwrap();
            assert!(before.as_str() < name, "{name}");
            for other in ["a/b4zzz", "a/b", "Z", "b", "c", "ê", "\u{d7ff}~", "x~"] {
                assert_eq!(other < name, other <= before.as_str(), "{other} and {name}");
            }
        }
        assert_eq!(before(""), None);
        assert_eq!(before("\u{1}"), None);
    }
}
