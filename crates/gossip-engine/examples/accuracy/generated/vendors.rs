//! Formats that vendors publish, written down for this measurement and not taken from the rules.

use crate::random::{BASE32, BASE62, BASE64URL, DIGITS, HEX, LOWER, LOWERNUM, Random, UPPER};

/// Name and format: `{x40}` is forty hexadecimal digits; see [`fill`].
pub(super) const FORMATS: &[(&str, &str)] = &[
    ("vercel-personal", "vcp_{a56}"),
    ("vercel-key", "vck_{a56}"),
    ("vercel-app", "vca_{a56}"),
    ("vercel-refresh", "vcr_{a56}"),
    ("vercel-integration", "vci_{a56}"),
    ("posthog-project", "phc_{a43}"),
    ("posthog-personal", "phx_{a43}"),
    ("docker-swarm-join", "SWMTKN-1-{l50}-{l25}"),
    ("docker-swarm-unlock", "SWMKEY-1-{a43}"),
    ("cloudflare-account", "cfat_{a40}{x8}"),
    ("newrelic-browser", "NRBR-{x19}"),
    ("heroku", "HRKU-AA{u58}"),
    ("slack-browser", "xoxc-{d12}-{d12}-{d13}-{x64}"),
    ("slack-cookie", "xoxd-{u140}"),
    ("supabase-v0", "sbp_v0_{x40}"),
    ("postman-collection", "PMAT-{B26}"),
    ("bitbucket-data-center", "BBDC-{a44}"),
    ("razorpay-live", "rzp_live_{a14}"),
    ("baseten", "{a8}.{a32}"),
    ("wakatime", "waka_{x8}-{x4}-4{x3}-a{x3}-{x12}"),
    ("runway", "key_{x128}"),
    ("cockroachdb", "CCDB1_{a22}_{a40}"),
    ("configcat", "configcat-sdk-1/{u22}/{u22}"),
    ("github-installation", "ghs_{a36}"),
    ("gitlab", "glpat-{u20}"),
    ("stripe", "sk_live_{a24}"),
    ("openai-project", "sk-proj-{u74}T3BlbkFJ{u74}"),
    ("anthropic", "sk-ant-api03-{u93}AA"),
    ("huggingface", "hf_{A34}"),
    ("groq", "gsk_{a52}"),
    ("sendgrid", "SG.{u22}.{u43}"),
    ("shopify", "shpat_{x32}"),
    ("digitalocean", "dop_v1_{x64}"),
    ("databricks", "dapi{x32}"),
    ("grafana-service-account", "glsa_{a32}_{x8}"),
    ("linear", "lin_api_{a40}"),
    ("npm", "npm_{a36}"),
    ("pulumi", "pul-{x40}"),
    ("terraform", "{a14}.atlasv1.{u67}"),
    ("telegram", "{d10}:AA{u33}"),
    ("twilio", "SK{x32}"),
    ("airtable", "pat{a14}.{x64}"),
    ("mailgun", "key-{x32}"),
    ("doppler", "dp.pt.{a43}"),
    ("figma", "figd_{u40}"),
    ("replicate", "r8_{a37}"),
    ("sentry-user", "sntryu_{x64}"),
    ("google-api", "AIza{u35}"),
    ("google-oauth", "GOCSPX-{u28}"),
    ("nvidia", "nvapi-{u64}"),
];

/// `d` digits, `x` hexadecimal, `l` lower case and digits, `a` letters and digits, `A` letters, `u`
/// base64url, `B` capitals and digits, `b` base32.
pub(super) fn fill(format: &str, random: &mut Random) -> String {
    let mut text = String::new();
    let mut rest = format;
    while let Some((before, field)) = rest.split_once('{') {
        text.push_str(before);
        let (field, after) = field.split_once('}').expect("a field is closed");
        let len = field[1..].parse().expect("a length follows the kind");
        let alphabet = match &field[..1] {
            "d" => DIGITS.to_owned(),
            "x" => HEX.to_owned(),
            "l" => LOWERNUM.to_owned(),
            "A" => format!("{LOWER}{UPPER}"),
            "u" => BASE64URL.to_owned(),
            "B" => format!("{UPPER}{DIGITS}"),
            "b" => BASE32.to_owned(),
            _ => BASE62.to_owned(),
        };
        text.push_str(&random.text(&alphabet, len));
        rest = after;
    }
    text + rest
}
