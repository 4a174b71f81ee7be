//! Counts, and the tables that they are shown in.

/// What was found of what should be, and what was found besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) found: usize,
    pub(crate) missed: usize,
    pub(crate) wrong: usize,
    pub(crate) right_to_pass: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, is_secret: bool, is_flagged: bool) {
        match (is_secret, is_flagged) {
            (true, true) => self.found += 1,
            (true, false) => self.missed += 1,
            (false, true) => self.wrong += 1,
            (false, false) => self.right_to_pass += 1,
        }
    }

    pub(crate) fn precision(&self) -> f64 {
        ratio(self.found, self.found + self.wrong)
    }

    pub(crate) fn recall(&self) -> f64 {
        ratio(self.found, self.found + self.missed)
    }

    pub(crate) fn f1(&self) -> f64 {
        ratio(2 * self.found, 2 * self.found + self.missed + self.wrong)
    }

    /// `precision/recall/F1`.
    pub(crate) fn shown(&self) -> String {
        format!("{:.3}/{:.3}/{:.3}", self.precision(), self.recall(), self.f1())
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) =
        values.into_iter().fold((0.0, 0usize), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// A Markdown table.
pub(crate) fn print(title: &str, header: &[String], rows: &[Vec<String>]) {
    println!("\n### {title}\n");
    println!("| {} |", header.join(" | "));
    println!("|{}", "---|".repeat(header.len()));
    for row in rows {
        println!("| {} |", row.join(" | "));
    }
}
