//! JUnit's XML, for build servers: a failed test for each finding.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

use gossip_runtime::RunSummary;

use super::xml::escaped;
use super::{Report, Shown};
use crate::output::incomplete;

#[derive(Default)]
pub(super) struct Junit {
    /// They are counted before the first, so they wait, on disk: there may be very many.
    cases: Option<BufWriter<File>>,
    failures: usize,
}

impl Junit {
    fn add(&mut self, case: &str) -> io::Result<()> {
        let cases = match &mut self.cases {
            Some(cases) => cases,
            none => none.insert(BufWriter::new(tempfile::tempfile()?)),
        };
        cases.write_all(case.as_bytes())
    }
}

impl Report for Junit {
    fn finding(&mut self, _: &mut dyn Write, shown: &Shown<'_>) -> io::Result<()> {
        let found = shown.found;
        let path = String::from_utf8_lossy(&shown.path).into_owned();
        let place = format!("{path}:{}:{}", found.line, found.column);
        let message = format!("{}: {} at {place}", found.rule, shown.description());
        let origin = shown.brought_in_by().map(|line| format!("{line}\n")).unwrap_or_default();
        let body = format!(
            "{}\n{origin}severity {}, confidence {}: it {}\nfingerprint {}\ngossip explain {}",
            shown.context(),
            found.severity,
            found.confidence,
            shown.why(),
            shown.fingerprint,
            found.rule,
        );
        self.failures += 1;
        self.add(&format!(
            "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{}\">\n      \
             <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
            escaped(&found.rule),
            escaped(&place),
            escaped(&path),
            found.line,
            escaped(&found.severity),
            escaped(&message),
            escaped(&body),
        ))
    }

    fn end(&mut self, out: &mut dyn Write, run: &RunSummary) -> io::Result<()> {
        let failures = self.failures;
        let errors = usize::from(!run.is_complete());
        if errors > 0 {
            self.add(&format!(
                "    <testcase classname=\"gossip\" name=\"everything was scanned\">\n      \
                 <error message=\"{}\"/>\n    </testcase>\n",
                escaped(&incomplete(run)),
            ))?;
        }
        // A suite without a test looks like one that did not run.
        if failures + errors == 0 {
            self.add("    <testcase classname=\"gossip\" name=\"no secrets\"/>\n")?;
        }
        let tests = (failures + errors).max(1);
        let ms = run.ended_ms.unwrap_or(run.started_ms).saturating_sub(run.started_ms);
        let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"");
        let time = format!("time=\"{}.{:03}\"", ms / 1_000, ms % 1_000);
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(out, "<testsuites {counts} {time}>")?;
        writeln!(out, "  <testsuite name=\"gossip\" {counts} {time}>")?;
        if let Some(cases) = self.cases.take() {
            let mut cases = cases.into_inner().map_err(io::IntoInnerError::into_error)?;
            cases.rewind()?;
            io::copy(&mut cases, out)?;
        }
        writeln!(out, "  </testsuite>\n</testsuites>")
    }
}
