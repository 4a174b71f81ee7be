//! The rules that come with gossip.

use std::sync::OnceLock;

use super::read::read;
use super::{RuleSet, Syntax};

/// One file per field of trade. Our own, written from the vendors' descriptions of their tokens.
const FILES: [(&str, &str); 12] = [
    ("builtin/code.toml", include_str!("../../rules/code.toml")),
    ("builtin/cloud.toml", include_str!("../../rules/cloud.toml")),
    ("builtin/ai.toml", include_str!("../../rules/ai.toml")),
    ("builtin/chat.toml", include_str!("../../rules/chat.toml")),
    ("builtin/payment.toml", include_str!("../../rules/payment.toml")),
    ("builtin/saas.toml", include_str!("../../rules/saas.toml")),
    ("builtin/services.toml", include_str!("../../rules/services.toml")),
    ("builtin/keys.toml", include_str!("../../rules/keys.toml")),
    ("builtin/files.toml", include_str!("../../rules/files.toml")),
    ("builtin/places.toml", include_str!("../../rules/places.toml")),
    ("builtin/programs.toml", include_str!("../../rules/programs.toml")),
    ("builtin/otp.toml", include_str!("../../rules/otp.toml")),
];

/// # Panics
/// If a built-in file is wrong; a test reads and compiles them all.
pub(super) fn rules() -> RuleSet {
    static RULES: OnceLock<RuleSet> = OnceLock::new();
    RULES
        .get_or_init(|| {
            FILES.iter().fold(RuleSet::empty(), |rules, (name, text)| {
                read(name, text, Syntax::Own, false)
                    .and_then(|file| rules.with(file, Syntax::Own))
                    .unwrap_or_else(|error| panic!("{error}"))
            })
        })
        .clone()
}
