//! One segment of an object: from anchors to candidates.

mod judging;

use std::mem;
use std::ops::Range;

use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input, meta};

use crate::decode::base64::Digits;
use crate::decode::{Decoded, Encoding, Origin, base64, escapes, hex, utf16};
use crate::detect::Told;
use crate::engine::Engine;
use crate::limits::{MAX_DECODE_DEPTH, MAX_MATCH_LEN, MAX_NOTES_LEN, NEARBY};
use crate::literals::stands_alone;
use crate::scratch::Scratch;
use crate::tables::Link;

/// Reaches of up to this many places are tried one by one, wider ones by a search.
const MAX_TRIES: usize = 16;

/// A segment with what it sees around it.
pub(crate) struct Segment<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) path: Option<&'a [u8]>,
    /// What the path says.
    pub(crate) told: Told,
    /// The offset of the text's first byte in the object.
    pub(crate) base: u64,
    pub(crate) text: &'a [u8],
}

/// Text that is looked at: the segment itself, or what was decoded from it.
struct View<'v> {
    text: &'v [u8],
    decoded_from: Option<(&'v View<'v>, &'v Origin)>,
    encoding: Encoding,
    depth: u8,
}

impl View<'_> {
    /// The bytes of the segment that hold `span` of this text.
    fn original(&self, span: Range<usize>) -> Range<usize> {
        match self.decoded_from {
            Some((parent, origin)) => parent.original(origin.encoded(span)),
            None => span,
        }
    }
}

/// Where an expression matched, in a view.
struct Match {
    whole: Range<usize>,
    secret: Range<usize>,
}

impl Segment<'_> {
    /// Collects the candidates that are announced in `owned`.
    pub(crate) fn scan(&self, scratch: &mut Scratch, owned: Range<usize>) {
        let view =
            View { text: self.text, decoded_from: None, encoding: Encoding::Plain, depth: 0 };
        self.scan_view(scratch, &view, owned);
    }

    fn scan_view(&self, scratch: &mut Scratch, view: &View<'_>, owned: Range<usize>) {
        scratch.views += 1;
        // Taken out, so that the scratch is free for what is inside; deeper layers have their own.
        let mut escapes = mem::take(&mut scratch.escapes[usize::from(view.depth)]);
        escapes.clear();
        self.engine.tables.prefilter.find(view.text, owned.clone(), &mut |literal, at| {
            if literal >= self.engine.tables.first_escape {
                escapes.push(at);
                return;
            }
            for link in &self.engine.tables.links[literal] {
                self.confirm(scratch, view, *link, at);
            }
        });
        for &index in &self.engine.tables.everywhere {
            self.search_everywhere(scratch, view, index, owned.clone());
        }
        if view.depth < self.engine.options.decoding.max_depth.min(MAX_DECODE_DEPTH) {
            self.scan_encoded(scratch, view, owned, &mut escapes);
        }
        scratch.escapes[usize::from(view.depth)] = escapes;
    }

    /// Decodes what is encoded in a view, and scans it.
    fn scan_encoded(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        owned: Range<usize>,
        escapes: &mut [usize],
    ) {
        let decoding = self.engine.options.decoding;
        let mut layer = mem::take(&mut scratch.layers[usize::from(view.depth)]);
        if decoding.utf16 {
            self.scan_utf16(scratch, view, owned.clone(), &mut layer);
        }
        if decoding.base64 || decoding.hex {
            self.scan_digits(scratch, view, owned.clone(), &mut layer);
        }
        if decoding.percent {
            escapes::percent_runs(view.text, owned, &mut |run| {
                self.scan_escapes(scratch, view, run, Encoding::Percent, &mut layer);
            });
        }
        // The first stage tells in no order.
        escapes.sort_unstable();
        let mut done = 0;
        for &at in escapes.iter() {
            let run = if at < done { None } else { escapes::backslash_run(view.text, at) };
            if let Some(run) = run {
                done = run.end;
                self.scan_escapes(scratch, view, run, Encoding::Escaped, &mut layer);
            }
        }
        scratch.layers[usize::from(view.depth)] = layer;
    }

    fn scan_utf16(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        owned: Range<usize>,
        layer: &mut Decoded,
    ) {
        utf16::runs(view.text, owned.clone(), &mut |run, character| {
            utf16::decode(&view.text[run.clone()], character, &mut layer.text);
            // A run may be as long as the segment: only characters of the owned part announce.
            let from = owned.start.saturating_sub(run.start).div_ceil(2);
            let to = (owned.end.min(run.end) - run.start).div_ceil(2);
            let origin = Origin::Pairs { start: run.start };
            self.scan_decoded(scratch, view, &layer.text, &origin, Encoding::Utf16, from..to);
        });
    }

    /// Base64 and hexadecimal, whose runs are found together.
    fn scan_digits(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        owned: Range<usize>,
        layer: &mut Decoded,
    ) {
        let decoding = self.engine.options.decoding;
        base64::runs(view.text, owned, &mut |run, digits| match digits {
            Digits::Base64 if decoding.base64 => self.scan_base64(scratch, view, run, layer),
            Digits::Hex if decoding.hex => self.scan_hex(scratch, view, run, layer),
            _ => {}
        });
    }

    fn scan_base64(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        run: Range<usize>,
        layer: &mut Decoded,
    ) {
        let encoded = &view.text[run.clone()];
        let lines = base64::decode_lines(encoded, run.start, &mut layer.text, &mut layer.starts);
        let origin = if lines {
            Origin::Base64Lines(mem::take(&mut layer.starts))
        } else {
            base64::decode(encoded, &mut layer.text);
            Origin::Base64 { start: run.start }
        };
        if base64::may_be_text(&layer.text) {
            let all = 0..layer.text.len();
            self.scan_decoded(scratch, view, &layer.text, &origin, Encoding::Base64, all);
        }
        if let Origin::Base64Lines(places) = origin {
            layer.starts = places;
        }
    }

    fn scan_hex(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        run: Range<usize>,
        layer: &mut Decoded,
    ) {
        let start = run.start + hex::prefix_len(&view.text[run.clone()]);
        if hex::decode_text(&view.text[start..run.end], &mut layer.text) {
            let all = 0..layer.text.len();
            let origin = Origin::Pairs { start };
            self.scan_decoded(scratch, view, &layer.text, &origin, Encoding::Hex, all);
        }
    }

    fn scan_escapes(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        run: Range<usize>,
        encoding: Encoding,
        layer: &mut Decoded,
    ) {
        escapes::decode(&view.text[run.clone()], run.start, &mut layer.text, &mut layer.starts);
        let origin = Origin::Table(mem::take(&mut layer.starts));
        let all = 0..layer.text.len();
        self.scan_decoded(scratch, view, &layer.text, &origin, encoding, all);
        if let Origin::Table(starts) = origin {
            layer.starts = starts;
        }
    }

    fn scan_decoded(
        &self,
        scratch: &mut Scratch,
        parent: &View<'_>,
        text: &[u8],
        origin: &Origin,
        encoding: Encoding,
        owned: Range<usize>,
    ) {
        let encoding = if parent.encoding == Encoding::Plain { encoding } else { parent.encoding };
        let view =
            View { text, decoded_from: Some((parent, origin)), encoding, depth: parent.depth + 1 };
        self.scan_view(scratch, &view, owned);
    }

    /// Tries the rule of an anchor that stands at `at`.
    fn confirm(&self, scratch: &mut Scratch, view: &View<'_>, link: Link, at: usize) {
        let rule = self.engine.rules.rule(link.rule as usize);
        let anchor = &rule.anchors[link.anchor as usize];
        if rule.anchored_by_keyword {
            self.search_nearby(scratch, view, link.rule, at);
            return;
        }
        // Most of what begins like a literal goes on as something else.
        if !anchor.next.may_be(view.text.get(at + anchor.bytes.len())) {
            return;
        }
        // Before an expression is tried, which costs more.
        if !self.path_fits(scratch, link.rule) {
            return;
        }
        if let Some(detector) = rule.detector {
            let word = at..at + anchor.bytes.len();
            detector.detect(view.text, self.told.kind, word, &mut |detected| {
                self.judge_detected(scratch, view, link.rule, &detected);
            });
            return;
        }
        let Some(last) = at.checked_sub(anchor.reach.min) else { return };
        let first = at.saturating_sub(anchor.reach.max);
        let covers = |found: &Match| found.whole.end >= at + anchor.bytes.len();
        if last - first < MAX_TRIES {
            // What is the tail of a word is dropped later; telling it now is cheaper than a match.
            let stands = |start: &usize| !rule.standalone || stands_alone(view.text, *start);
            for start in (first..=last).filter(stands) {
                let matched = self.match_at(scratch, view, link.rule, start);
                if let Some(found) = matched.filter(covers) {
                    self.judge(scratch, view, link.rule, Some(anchor), &found);
                    return;
                }
            }
            return;
        }
        // Where a match may begin in many places, most anchors lack what else it has.
        if memchr::memmem::find(&view.text[first..at], &anchor.before).is_none() {
            return;
        }
        let starts = self.where_a_match_begins(scratch, view, link.rule, first..last + 1);
        if let Some(starts) = starts {
            self.search(scratch, view, link.rule, starts, &mut |found| {
                if covers(found) { Step::TakeAndStop } else { Step::GoOn }
            });
        }
    }

    /// What is left of `starts` from the first place on where a match begins. It looks further ahead,
    /// and remembers where none begins: a text of many anchors is searched once, not for each of them.
    fn where_a_match_begins(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        index: u32,
        starts: Range<usize>,
    ) -> Option<Range<usize>> {
        let ahead = self.engine.rules.rule(index as usize).max_match_len;
        let (in_view, empty) = scratch.searched[index as usize].clone();
        let is_known = in_view == scratch.views && empty.contains(&starts.start);
        let from = if is_known { empty.end } else { starts.start };
        if from >= starts.end {
            return None;
        }
        let far = (starts.end + ahead).min(view.text.len());
        let input = Input::new(view.text).range(from..(far + ahead).min(view.text.len()));
        let first = self.run(scratch, index, &input).map_or(far, |found| found.whole.start);
        let known_from = if is_known { empty.start } else { from };
        scratch.searched[index as usize] = (scratch.views, known_from..first);
        (first < starts.end).then_some(first..starts.end)
    }

    /// Searches around a keyword, but not what was searched around the keyword before.
    fn search_nearby(&self, scratch: &mut Scratch, view: &View<'_>, index: u32, at: usize) {
        let mut starts = at.saturating_sub(NEARBY)..(at + NEARBY).min(view.text.len());
        let (in_view, searched) = &mut scratch.searched[index as usize];
        if *in_view == scratch.views && searched.contains(&starts.start) {
            let from = searched.end;
            searched.end = from.max(starts.end);
            starts.start = from;
        } else {
            *in_view = scratch.views;
            *searched = starts.clone();
        }
        self.search(scratch, view, index, starts, &mut |_| Step::TakeAndGoOn);
    }

    fn search_everywhere(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        index: u32,
        owned: Range<usize>,
    ) {
        // Most rules of this kind are for few paths.
        if !self.path_fits(scratch, index) {
            return;
        }
        let Some(detector) = self.engine.rules.rule(index as usize).detector else {
            self.search(scratch, view, index, owned, &mut |_| Step::TakeAndGoOn);
            return;
        };
        // What is decoded was not written by people, but for text in two bytes a character; nor is what is long.
        let start = self.base + view.original(owned.clone()).start as u64;
        // A rule with paths of its own says itself which files it reads.
        let has_paths = self.engine.rules.rule(index as usize).path.is_some();
        let is_note = (self.told.is_note || has_paths) && start < MAX_NOTES_LEN as u64;
        if is_note && matches!(view.encoding, Encoding::Plain | Encoding::Utf16) {
            detector.read(view.text, owned, &mut |detected| {
                self.judge_detected(scratch, view, index, &detected);
            });
        }
    }

    /// Matches that begin in `starts`, one after the other.
    fn search(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        index: u32,
        starts: Range<usize>,
        decide: &mut dyn FnMut(&Match) -> Step,
    ) {
        let rule = self.engine.rules.rule(index as usize);
        let end = (starts.end + rule.max_match_len).min(view.text.len());
        let mut from = starts.start;
        while from < starts.end {
            let input = Input::new(view.text).range(from..end);
            let Some(found) = self.run(scratch, index, &input) else { return };
            if found.whole.start >= starts.end {
                return;
            }
            from = found.whole.end.max(found.whole.start + 1);
            match decide(&found) {
                Step::TakeAndStop => {
                    self.judge(scratch, view, index, None, &found);
                    return;
                }
                Step::TakeAndGoOn => self.judge(scratch, view, index, None, &found),
                Step::GoOn => {}
            }
        }
    }

    fn match_at(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        index: u32,
        start: usize,
    ) -> Option<Match> {
        let end = view.text.len().min(start + MAX_MATCH_LEN);
        let input = Input::new(view.text).range(start..end).anchored(Anchored::Yes);
        self.run(scratch, index, &input)
    }

    fn run(&self, scratch: &mut Scratch, index: u32, input: &Input<'_>) -> Option<Match> {
        let rule = self.engine.rules.rule(index as usize);
        let regex: &meta::Regex = rule.regex.as_ref()?.regex();
        let cache =
            scratch.caches[index as usize].get_or_insert_with(|| Box::new(regex.create_cache()));
        // Most tries fail, and failing needs no groups.
        regex.search_half_with(cache, input)?;
        let groups = regex.captures_len();
        if groups == 1 {
            // Where the match is can be told without the slow engine that keeps track of groups.
            let whole = regex.search_with(cache, input)?.range();
            return Some(Match { secret: whole.clone(), whole });
        }
        let slots = &mut scratch.slots[..groups * 2];
        regex.search_slots_with(cache, input, slots)?;
        let group = |at: usize| slot_range(slots, at);
        let whole = group(0)?;
        let secret = match rule.secret_group {
            Some(at) => group(at)?,
            None => (1..groups)
                .filter_map(group)
                .find(|range| !range.is_empty())
                .unwrap_or_else(|| whole.clone()),
        };
        Some(Match { whole, secret })
    }
}

/// What to do with a match of a search.
enum Step {
    TakeAndStop,
    TakeAndGoOn,
    GoOn,
}

fn slot_range(slots: &[Option<NonMaxUsize>], group: usize) -> Option<Range<usize>> {
    let start = slots.get(group * 2).copied()??;
    let end = slots.get(group * 2 + 1).copied()??;
    Some(start.get()..end.get())
}
