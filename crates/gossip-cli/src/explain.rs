//! `gossip explain`: what a rule finds, why, and what to do about it.

use std::io::Write;

use gossip_engine::{Rule, RuleSet, rules_for_gitleaks_id, template};

use crate::Outcome;
use crate::args::ExplainArgs;
use crate::config::{no_such_rule, rules_here};
use crate::failure::Failure;
use crate::output::stdout;
use crate::say::harmless;

/// Where secrets are revoked, by how the rules' names begin; the longest that fits counts.
const CONSOLES: &[(&str, &str)] = &[
    ("airtable", "https://airtable.com/create/tokens"),
    ("anthropic", "https://console.anthropic.com/settings/keys"),
    ("atlassian", "https://id.atlassian.com/manage-profile/security/api-tokens"),
    ("aws", "https://console.aws.amazon.com/iam (the user's security credentials)"),
    ("azure-devops", "https://dev.azure.com (user settings, personal access tokens)"),
    ("azure", "https://portal.azure.com (rotate the keys of the resource)"),
    ("bitbucket", "https://bitbucket.org/account/settings/app-passwords"),
    ("cloudflare", "https://dash.cloudflare.com/profile/api-tokens"),
    ("crates-io", "https://crates.io/settings/tokens"),
    ("databricks", "the workspace's user settings, access tokens"),
    ("datadog", "https://app.datadoghq.com/organization-settings/api-keys"),
    ("digitalocean", "https://cloud.digitalocean.com/account/api/tokens"),
    ("discord", "https://discord.com/developers/applications"),
    ("docker", "https://app.docker.com/settings/personal-access-tokens"),
    ("figma", "https://www.figma.com/settings (security)"),
    ("gcp", "https://console.cloud.google.com/apis/credentials"),
    ("github", "https://github.com/settings/tokens, or the settings of the app"),
    (
        "gitlab",
        "https://gitlab.com/-/user_settings/personal_access_tokens, or the project's settings",
    ),
    ("grafana", "the instance's administration, service accounts"),
    ("heroku", "https://dashboard.heroku.com/account"),
    ("huggingface", "https://huggingface.co/settings/tokens"),
    ("linear", "https://linear.app/settings/api"),
    ("mailgun", "https://app.mailgun.com/settings/api_security"),
    ("netlify", "https://app.netlify.com/user/applications"),
    ("notion", "https://www.notion.so/my-integrations"),
    ("npm", "https://www.npmjs.com/settings/~/tokens"),
    ("openai", "https://platform.openai.com/api-keys"),
    ("pypi", "https://pypi.org/manage/account/token"),
    ("rubygems", "https://rubygems.org/profile/api_keys"),
    ("sendgrid", "https://app.sendgrid.com/settings/api_keys"),
    ("sentry", "https://sentry.io/settings/auth-tokens"),
    ("shopify", "the shop's admin, apps and sales channels"),
    ("slack", "https://api.slack.com/apps (revoke the app's tokens)"),
    ("square", "https://developer.squareup.com/apps"),
    ("stripe", "https://dashboard.stripe.com/apikeys (roll the key)"),
    ("telegram", "@BotFather, /revoke"),
    ("terraform", "https://app.terraform.io/app/settings/tokens"),
    ("twilio", "https://console.twilio.com/us1/account/keys-credentials/api-keys"),
    ("vault", "`vault token revoke` on the server"),
    ("vercel", "https://vercel.com/account/tokens"),
];

/// What to do about a finding of this rule, step by step.
pub(crate) fn remedy(rule: &str) -> Vec<String> {
    let fits = CONSOLES.iter().filter(|(name, _)| rule.starts_with(name));
    let console = fits.max_by_key(|(name, _)| name.len()).map(|(_, place)| *place);
    let is_key =
        rule.contains("private-key") || rule.contains("keystore") || rule.starts_with("jwk");
    let is_password = ["password", "url-basic-auth", "netrc", "htpasswd", "connection-string"];
    let revoke = match console {
        Some(place) => format!("Revoke it at {place}: whoever has seen it can use it until then."),
        None if is_key => {
            "Make a new key pair, put the new public key in place of the old everywhere, and revoke \
             certificates of the old one."
                .to_owned()
        }
        None if is_password.iter().any(|part| rule.contains(part)) => {
            "Change the password where it is used; everybody who has seen it knows it.".to_owned()
        }
        None => "Revoke it where it was given out: whoever has seen it can use it until then."
            .to_owned(),
    };
    vec![
        revoke,
        "Look at the log of the service for uses since it was written here.".to_owned(),
        "Give the new one to the program from outside: a secret store, or the environment.".to_owned(),
        "Take it out of the file. In git it stays in the history: rewriting that helps only once it \
         is revoked."
            .to_owned(),
        "If it is none: `gossip:allow` in a comment of the line, or its fingerprint in .gossipignore."
            .to_owned(),
    ]
}

/// The rule with this id, or those that gitleaks calls so.
fn find<'r>(rules: &'r RuleSet, id: &str) -> Option<Vec<&'r Rule>> {
    let of_gitleaks = || {
        let ids = rules_for_gitleaks_id(id).filter(|ids| !ids.is_empty())?;
        ids.iter().map(|id| rules.get(id)).collect()
    };
    rules.get(id).map(|rule| vec![rule]).or_else(of_gitleaks)
}

pub(crate) fn run(args: &ExplainArgs) -> Result<Outcome, Failure> {
    let here = rules_here(&args.rules)?;
    let builtin = RuleSet::builtin();
    // A rule that a configuration disables may have found something before.
    let found = [&here, &builtin].into_iter().find_map(|rules| find(rules, &args.rule));
    let found = found.ok_or_else(|| Failure::new(no_such_rule(&here, &args.rule)))?;
    let mut out = stdout();
    for rule in found {
        writeln!(out, "{}", harmless(rule.id()))?;
        if !rule.description().is_empty() {
            writeln!(out, "  {}", harmless(rule.description()))?;
        }
        writeln!(out, "\n  severity    {}", rule.severity())?;
        let surer = if rule.checksum().is_some() { ", high if its checksum is right" } else { "" };
        writeln!(out, "  confidence  {}{surer}", rule.confidence())?;
        if rule.entropy() > 0.0 {
            writeln!(out, "  entropy     {} bits per byte at least", rule.entropy())?;
        }
        if !rule.keywords().is_empty() {
            writeln!(out, "  keywords    {}, near it", harmless(&rule.keywords().join(", ")))?;
        }
        let example = rule.examples().first().and_then(|text| template::expand(text, 1).ok());
        if let Some(example) = example {
            writeln!(out, "\n  It finds, for example (made up):\n    {}", harmless(&example.text))?;
        }
        writeln!(out, "\n  What to do:")?;
        for (step, number) in remedy(rule.id()).iter().zip(1..) {
            writeln!(out, "  {number}. {step}")?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(Outcome::Clean)
}
