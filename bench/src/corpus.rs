//! What is scanned and searched, the same in every benchmark.

use std::path::PathBuf;

/// Shapes of tokens, as somebody would grep for them.
pub const TWENTY: [&str; 20] = [
    r"gh[pousr]_[A-Za-z0-9]{36}",
    r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    r"(?:AKIA|ASIA)[A-Z2-7]{16}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"xox[bpars]-[A-Za-z0-9-]{10,}",
    r"sk_live_[A-Za-z0-9]{24,}",
    r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    r"glpat-[A-Za-z0-9_-]{20}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}",
    r"dop_v1_[a-f0-9]{64}",
    r"shpat_[a-fA-F0-9]{32}",
    r"hooks\.slack\.com/services/[A-Za-z0-9/]{40,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"sk-ant-api03-[A-Za-z0-9_-]{93}",
    r"hf_[A-Za-z]{34}",
    r"dckr_pat_[A-Za-z0-9_-]{27}",
    r"hvs\.[A-Za-z0-9_-]{90,}",
    r"postgres://[^:\s]+:[^@\s]+@",
];

/// Where cargo has unpacked the sources of other people's crates.
#[must_use]
pub fn registry_sources() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    Some(home.join("registry/src")).filter(|sources| sources.is_dir())
}

/// Lines of a web server and a service, without end, the same in every run.
#[derive(Clone, Debug)]
pub struct LogLines {
    state: u64,
}

impl Default for LogLines {
    fn default() -> Self {
        Self { state: 7 }
    }
}

impl LogLines {
    fn random(&mut self, bound: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % bound
    }
}

impl Iterator for LogLines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let levels = ["INFO", "DEBUG", "WARN", "ERROR"];
        let paths =
            ["/api/v1/users", "/static/app.js", "/login", "/health", "/oauth/token?grant=code"];
        let texts = [
            "request finished",
            "cache miss for key",
            "token refreshed for session",
            "retrying upload",
            "password check passed",
            "connection from pool returned",
        ];
        let level = levels[self.random(4) as usize];
        let path = paths[self.random(5) as usize];
        let text = texts[self.random(6) as usize];
        Some(format!(
            "2026-05-{:02}T{:02}:{:02}:{:02}.{:03}Z {level} [worker-{}] {text} method=GET path={path} \
             status={} duration_ms={} request_id={:08x}-{:04x}-{:04x}-{:04x}-{:08x} ip=10.{}.{}.{} \
             agent=\"Mozilla/5.0 (X11; Linux x86_64)\"",
            1 + self.random(28),
            self.random(24),
            self.random(60),
            self.random(60),
            self.random(1000),
            self.random(32),
            200 + self.random(300),
            self.random(900),
            self.random(1 << 31),
            self.random(1 << 16),
            self.random(1 << 16),
            self.random(1 << 16),
            self.random(1 << 31),
            self.random(256),
            self.random(256),
            self.random(256),
        ))
    }
}
