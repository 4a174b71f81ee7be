//! One page for browsers, with filters, that needs no network.
//!
//! Findings are data in the page: its script, the only one that its policy lets run, makes text of
//! them and never markup.

use std::io::{self, Write};

use gossip_runtime::RunSummary;
use serde_json::json;

use super::json::FindingJson;
use super::xml::escaped;
use super::{Report, Shown, time};
use crate::explain::remedy;
use crate::say::shown_bytes;
use crate::source::as_typed;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Of the script: a browser runs nothing else. The test in a browser tells when it is stale.
const SCRIPT_HASH: &str = include_str!("page.js.sha256");

#[derive(Default)]
pub(super) struct Html {
    has_some: bool,
}

impl Report for Html {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let policy = format!(
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; \
             base-uri 'none'; form-action 'none'",
            SCRIPT_HASH.trim()
        );
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>gossip: findings</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <noscript>This page needs its own script, and nothing else.</noscript>\n\
             <main id=\"page\"></main>\n<script type=\"application/json\" id=\"findings\">["
        )
    }

    fn finding(&mut self, out: &mut dyn Write, shown: &Shown<'_>) -> io::Result<()> {
        out.write_all(if self.has_some { b",\n" } else { b"\n" })?;
        self.has_some = true;
        let mut finding = serde_json::to_value(FindingJson::from(shown))?;
        finding["remedy"] = json!(remedy(&shown.found.rule));
        out.write_all(in_script(&serde_json::to_string(&finding)?).as_bytes())
    }

    fn end(&mut self, out: &mut dyn Write, run: &RunSummary) -> io::Result<()> {
        let counts = |counts: &[(String, u64)]| -> Vec<String> {
            counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect()
        };
        let about = json!({
            "run": run.run.as_raw(),
            "target": shown_bytes(&as_typed(&run.target)),
            "started": time::utc(run.started_ms),
            "status": run.status.to_string(),
            "items": run.items,
            "bytes": run.bytes,
            "skipped": counts(&run.skipped),
            "failed": counts(&run.failed),
            "version": env!("CARGO_PKG_VERSION"),
        });
        write!(
            out,
            "\n]</script>\n<script type=\"application/json\" id=\"about\">{}</script>\n\
             <script>{SCRIPT}</script>\n<!-- {} -->\n</body>\n</html>\n",
            in_script(&serde_json::to_string(&about)?),
            escaped(env!("CARGO_PKG_VERSION")),
        )
    }
}

/// JSON as it may stand in a `script` element: nothing in it ends the element or begins a comment.
/// Such characters only stand in its strings.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
