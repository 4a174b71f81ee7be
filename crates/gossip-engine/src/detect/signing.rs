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
    let has_digit = || value.iter().any(u8::is_ascii_digit);
    let is_set = match (place.kind, place.found.syntax) {
        (
            FileKind::Config,
            Syntax::Quoted
            | Syntax::BareEquals
            | Syntax::Variable
            | Syntax::Flag
            | Syntax::BareColon,
        ) => !is_followed_by_word(place) && !is_title(value),
        (FileKind::Code, Syntax::Quoted | Syntax::Compared) => !value.contains(&b' '),
        // What documentation shows was chosen as an example, unless it has what those leave out.
        (FileKind::Text, Syntax::Quoted | Syntax::BareEquals | Syntax::Variable) => {
            has_digit() && value.iter().any(u8::is_ascii_uppercase)
        }
        _ => false,
    };
    is_set
        && (is_name(place, named) || is_of_cipher(place, named))
        && !is_name_of_something(place)
        && value.iter().any(u8::is_ascii_alphabetic)
        && own::is_chosen(value)
}

/// `JWT_SECRET=stored in a vault`: the first word of several.
fn is_followed_by_word(place: &Place<'_>) -> bool {
    place.found.syntax != Syntax::Quoted
        && matches!(place.behind(2), [b' ', next] if next.is_ascii_alphanumeric())
}

/// `OAuth token secret`: what is shown to people.
fn is_title(value: &[u8]) -> bool {
    value.contains(&b' ') && value.first().is_some_and(u8::is_ascii_uppercase)
}

/// Whether the name is of what something is signed with, and of no service's key.
fn is_name(place: &Place<'_>, named: Named) -> bool {
    let name = place.name();
    let ends_with = |ends: &[&str]| ignore_case::ends_with_any(name, ends);
    // Before anything else, as most names have neither.
    if !ignore_case::contains(name, "secret") && !ends_with(&["jwt_key", "jwtkey"]) {
        return false;
    }
    let words = || name::words(name);
    let is = |word: &[u8], list: &[&str]| ignore_case::is_any(word, list);
    let is_one = |word: &[u8]| ignore_case::contains(word, "secret") || is(word, NAMING);
    // Passport's ends in a key of anything.
    let is_passport = is(name, &["secretorkey"]);
    let is_signing = || words().any(|word| is(word, OF_SIGNING));
    // `secretKey: databaseUrl` of Kubernetes, `SECRET_KEY = 'encryptionAlias'`: other things are called so, too.
    let is_key = || {
        let ends = ends_with(&["secret_key", "secret_key_base", "secret-key"]);
        ends && place.found.syntax != Syntax::BareColon
            && (is_mixed(place.value()) || is_setting(place))
    };
    let is_alone = || {
        is(name, &["secret"])
            && (is_of_session(&place.text[..place.name.start])
                || (syntax::is_constant(name) && is_mixed(place.value())))
    };
    matches!(named.kind, Kind::Secret | Kind::Key | Kind::Token)
        && (named.is_explicit || is_passport)
        && words().all(is_one)
        && (is_passport || is_signing() || is_key() || is_alone())
}

/// `AES_KEY = "otterladderquivr"`: as many characters as a cipher takes, which nobody's name has by chance.
fn is_of_cipher(place: &Place<'_>, named: Named) -> bool {
    const CIPHERS: &[&str] = &["aes", "cipher", "crypto", "encrypt", "encryption"];
    matches!(named.kind, Kind::Key | Kind::Secret)
        && matches!(place.value().len(), 16 | 24 | 32)
        && !place.value().contains(&b'-')
        && name::words(place.name()).any(|word| ignore_case::is_any(word, CIPHERS))
}

/// `SECRET_KEY = …` at the start of a line, `app.secret_key = …`, `config['SECRET_KEY'] = …`: how Python's frameworks and
/// environments set it.
fn is_setting(place: &Place<'_>) -> bool {
    let name = place.name();
    let starts_line = syntax::starts_line(place.text, place.name.start);
    let is_of_config = ignore_case::ends_with_any(place.before(), &["config['", "config[\""]);
    (syntax::is_constant(name) && (starts_line || is_of_config))
        || ignore_case::ends_with_any(name, &["app.secret_key"])
}

/// Whether a value has more than the letters of a name: digits, or signs that no name has.
fn is_mixed(value: &[u8]) -> bool {
    value.iter().any(|byte| byte.is_ascii_digit() || b"#@!$^&*+=~?".contains(byte))
}

/// Whether what stands before a name opens a call that signs sessions or tokens.
fn is_of_session(before: &[u8]) -> bool {
    const MAX_BEFORE: usize = 64;
    #[rustfmt::skip]
    const CALLS: &[&str] = &["session({", "sessions({", "expressjwt({", "jwt({", "jwtmodule.register({", "cookiesession({"];
    let before = &before[before.len().saturating_sub(MAX_BEFORE)..];
    ignore_case::contains_any(before, CALLS)
}

/// `cookieSecret: 'otter-oauth2-cookie'`, `JWT_SECRET_KEY = 'otter_secret_key'`: the names of secrets and of settings.
fn is_name_of_something(place: &Place<'_>) -> bool {
    let value = place.value();
    let in_name = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-');
    // `oauth2` is a word of a name, `731` is none.
    let is_word = |word: &[u8]| {
        word.first().is_some_and(u8::is_ascii_lowercase)
            && word.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    match place.kind {
        FileKind::Code => {
            value.iter().all(in_name)
                && ignore_case::ends_with_any(value, &["key", "secret", "token"])
        }
        _ if !place.between().contains(&b':') || !value.contains(&b'-') => false,
        _ => {
            place.found.syntax == Syntax::BareColon
                || value.split(|byte| matches!(byte, b'-' | b'_')).all(is_word)
        }
    }
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
            (Code, "secretOrKey: 'goodOtters',", "goodOtters"),
            (Code, "app.secret_key = \"mySecretOtters\"", "mySecretOtters"),
            (Code, "SECRET_KEY = 'otterLadder'\n", "otterLadder"),
            (Config, "run --jwt.secret=OtterSign2023!!\n", "OtterSign2023!!"),
            (Text, "JWT_SECRET=OtterLadder2024!\n", "OtterLadder2024!"),
            (Code, "app.use(session({ secret: 'hereBeOtters' }));", "hereBeOtters"),
            (Code, "const s = process.env.JWT_SECRET || 'ottersign';", "ottersign"),
            (Code, "jwt.sign({ id }, 'otter-ladder')", "otter-ladder"),
            (Code, "String AES_KEY = \"OtterSantaMariaX\";", "OtterSantaMariaX"),
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
            (Code, "String AES_KEY = \"OtterSantaMaria\";"),
            (Code, "mount({ secret: 'hereBeOtters' })"),
            (Code, "jwt.sign({ id }, 'secret')"),
            (Code, "jwt.sign({ id }, 'otterladder' + salt)"),
            (Code, "const JWT_TOKEN_KEY = 'otterSession'"),
            (Code, "String SECRET_KEY = \"otterLadder\";"),
            (Code, "errors: { jwtSecret: 'Too otterly' }"),
            (Config, "  - secretKey: otterUrl\n"),
            (Config, "cookieSecret: 'otter-proxy-cookie'\n"),
            (Config, "cookieSecret: 'oauth2-otter-cookie'\n"),
            (Config, "JWT_SECRET=otters in a vault\n"),
            (Config, "{ \"tokenSecret\": \"OAuth otter secret\" }"),
            (Config, "RUN SECRET_KEY_BASE=precompile bundle exec\n"),
            (Config, "JWT_SECRET=undefined\n"),
        ] {
            assert_eq!(found(kind, text), None, "{text}");
        }
    }
}
