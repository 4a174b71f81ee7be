//! Secrets that people chose to sign with: `JWT_SECRET=quicktalk#secret`, `session({ secret: 'hereBeOtters' })`.
//!
//! Whoever signs sessions or tokens makes the secret up, and most people make it up as a password, of words that
//! say what it is. Beside a name that speaks of nothing else a value counts if anything of it is their own.

use super::file_kind::FileKind;
use super::name::{self, Kind, Named};
use super::own;
use super::place::Place;
use super::syntax::{self, Syntax};
use crate::ignore_case;

/// Words of which the name of such a secret is made, beside `secret` itself.
#[rustfmt::skip]
const NAMING: &[&str] = &[
    "access", "app", "application", "auth", "base", "config", "cookie", "cookies", "django", "env", "express", "flask", "hash",
    "json", "jsonwebtoken", "jwt", "key", "login", "my", "nextauth", "node", "or", "passport", "process", "rails", "refresh",
    "security", "server", "session", "sessions", "sign", "signing", "spring", "token", "tokens", "user", "web",
];
/// Of those, what says that something is signed.
#[rustfmt::skip]
const OF_SIGNING: &[&str] = &[
    "auth", "cookie", "cookies", "jsonwebtoken", "jwt", "nextauth", "session", "sessions", "sign", "signing", "token",
];

/// Whether the value is one that somebody chose to sign with.
pub(super) fn is_chosen(place: &Place<'_>, named: Named) -> bool {
    let value = place.value();
    let is_set = match (place.kind, place.found.syntax) {
        (FileKind::Config, Syntax::Quoted | Syntax::BareEquals | Syntax::Variable) => true,
        // Of Kubernetes and the like the names of secrets stand there.
        (FileKind::Config, Syntax::BareColon) => !value.contains(&b'-'),
        (FileKind::Code, Syntax::Quoted | Syntax::Compared) => true,
        _ => false,
    };
    is_set && is_name(place, named) && own::is_chosen(value) && !is_name_of_setting(place)
}

/// Whether the name is of what something is signed with, and of no service's key.
fn is_name(place: &Place<'_>, named: Named) -> bool {
    let name = place.name();
    let has_secret = ignore_case::contains(name, "secret");
    // Before anything else, as most names have neither.
    if !has_secret && !ignore_case::contains(name, "jwt") {
        return false;
    }
    let words = || name::words(name);
    let is = |word: &[u8], list: &[&str]| ignore_case::is_any(word, list);
    let is_one = |word: &[u8]| ignore_case::contains(word, "secret") || is(word, NAMING);
    let is_signing = || words().any(|word| is(word, OF_SIGNING));
    let is_key = || {
        ignore_case::ends_with_any(
            name,
            &["secret_key", "secretkey", "secretorkey", "secret_key_base", "secret-key"],
        )
    };
    let is_alone = || {
        name.eq_ignore_ascii_case(b"secret")
            && (syntax::is_constant(name) || is_of_session(&place.text[..place.name.start]))
    };
    // Passport's `secretOrKey` ends in a key of anything.
    let is_explicit = named.is_explicit || ignore_case::is_any(name, &["secretorkey"]);
    matches!(named.kind, Kind::Secret | Kind::Key | Kind::Token)
        && is_explicit
        && words().all(is_one)
        && (is_signing() || is_key() || is_alone())
}

/// Whether what stands before a name opens a call that signs sessions or tokens.
fn is_of_session(before: &[u8]) -> bool {
    const MAX_BEFORE: usize = 64;
    #[rustfmt::skip]
    const CALLS: &[&str] = &["session({", "sessions({", "expressjwt({", "jwt({", "jwtmodule.register({", "cookiesession({"];
    let before = &before[before.len().saturating_sub(MAX_BEFORE)..];
    ignore_case::contains_any(before, CALLS)
}

/// `SECRET_KEY = 'aws_secret_access_key'`: code gives names to settings, too.
fn is_name_of_setting(place: &Place<'_>) -> bool {
    let value = place.value();
    let in_name = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-');
    place.kind == FileKind::Code
        && value.iter().all(in_name)
        && ignore_case::ends_with_any(value, &["key", "secret", "token"])
}

#[cfg(test)]
mod tests {
    use crate::detect::FileKind::{Code, Config, Text};
    use crate::detect::tests::found;

    #[test]
    fn what_people_sign_with_is_found() {
        for (kind, text, value) in [
            (Config, "JWT_SECRET=quicktalk#secret\n", "quicktalk#secret"),
            (Config, "JWT_SECRET = \"OtterLadderKey\"\n", "OtterLadderKey"),
            (
                Config,
                "ACCESS_TOKEN_SECRET=otterladder_super_secret_2025\n",
                "otterladder_super_secret_2025",
            ),
            (Config, "SECRET=supersecret731\n", "supersecret731"),
            (Config, "{ \"jwtSecret\": \"otter token\" }", "otter token"),
            (Config, "jwt.secret=myOtterKey\n", "myOtterKey"),
            (Config, "JWT_SECRET: otterKey7\n", "otterKey7"),
            (Code, "app.config['SECRET_KEY'] = 'otter_ladder_key_7'", "otter_ladder_key_7"),
            (Code, "secretOrKey: 'openOtters',", "openOtters"),
            (Code, "app.use(session({ secret: 'hereBeOtters' }));", "hereBeOtters"),
            (Code, "const s = process.env.JWT_SECRET || 'ottersign';", "ottersign"),
            (Code, "jwt.sign({ id }, 'otter-ladder')", "otter-ladder"),
        ] {
            assert_eq!(found(kind, text), Some(value), "{text}");
        }
    }

    #[test]
    fn what_everybody_has_or_asks_for_another_is_not() {
        for (kind, text) in [
            (Config, "JWT_SECRET=mysupersecretkey\n"),
            (Config, "JWT_SECRET=secret_key_123\n"),
            (Config, "JWT_SECRET=my_jwt_secret_2025\n"),
            (Config, "JWT_SECRET=change_this_otter\n"),
            (Config, "JWT_SECRET=any_otter_here\n"),
            (Config, "JWT_SECRET: otter-jwt-secret\n"),
            (Config, "CLIENT_SECRET=otterladder\n"),
            (Config, "STRIPE_SECRET_KEY=otterladder_key\n"),
            (Config, "JWT_SECRET=OTTER_LADDER\n"),
            (Text, "JWT_SECRET=otterladder#secret\n"),
            (Code, "SECRET_KEY = 'otter_secret_access_key'"),
            (Code, "SECRET_KEY = 'otter.secretOpened'"),
            (Code, "mount({ secret: 'hereBeOtters' })"),
            (Code, "jwt.sign({ id }, 'secret')"),
        ] {
            assert_eq!(found(kind, text), None, "{text}");
        }
    }
}
