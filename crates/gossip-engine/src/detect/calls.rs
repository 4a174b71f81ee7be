//! Calls that are given a password by its place, without a word for it: `login("user", "…")`.

use std::ops::Range;

use super::name::{Kind, LOGIN, Named};
use super::syntax::{self, Assignment, Syntax};
use crate::ignore_case;

/// A function whose argument at this place, counted from nought, is a credential.
struct Call {
    opening: &'static str,
    place: usize,
    takes: Takes,
    /// Nothing follows it: with more arguments the function has other places.
    is_last: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Password,
    /// What others are signed or encrypted with, which may be chosen as a password is.
    Secret,
    /// What something begins with, which is a key only if it looks like one at once.
    Anything,
    /// What a client is made with: sixteen bytes in hexadecimal digits are a key there.
    OfClient,
}

const fn password(opening: &'static str, place: usize) -> Call {
    Call { opening, place, takes: Takes::Password, is_last: false }
}

const fn last_password(opening: &'static str, place: usize) -> Call {
    Call { is_last: true, ..password(opening, place) }
}

const fn secret(opening: &'static str, place: usize) -> Call {
    Call { opening, place, takes: Takes::Secret, is_last: false }
}

const fn client(opening: &'static str) -> Call {
    Call { opening, place: 0, takes: Takes::OfClient, is_last: false }
}

const fn anything(opening: &'static str) -> Call {
    Call { opening, place: 0, takes: Takes::Anything, is_last: false }
}

/// What a client logs in with.
const TOKEN: Named = Named { kind: Kind::Token, bits: 0.0, is_explicit: true };
const ANYTHING: Named = Named { kind: Kind::Token, bits: -8.0, is_explicit: false };
const OF_CLIENT: Named = Named { bits: -6.0, ..ANYTHING };
const SECRET: Named = Named { kind: Kind::Secret, bits: 5.0, is_explicit: true };

/// Of the libraries of many languages; one that ends as another does stands before it.
const CALLS: &[Call] = &[
    password("ftp_login(", 2),
    password("signinwithemailandpassword(", 2),
    password("createuserwithemailandpassword(", 2),
    password("simple_bind_s(", 1),
    password("ldap_bind(", 2),
    password("login(", 1),
    password("authenticate(", 1),
    password("getconnection(", 2),
    password("mysqli_connect(", 2),
    password("mysql_connect(", 2),
    password("mysql_real_connect(", 3),
    password("new mysqli(", 2),
    password("new pdo(", 2),
    password("\\pdo(", 2),
    password("dbi->connect(", 2),
    password("wifi.begin(", 1),
    password("passwordauthentication(", 1),
    password("sql.newinstance(", 2),
    password("sql2o(", 2),
    password("sequelize(", 2),
    password("mysql:connect(", 2),
    password("epgsql:connect(", 2),
    password("create_superuser(", 2),
    password("usermanager.createasync(", 1),
    password("setbasicauth(", 1),
    password("basicauthentication(", 1),
    password("plaintextauthprovider(", 1),
    password("jsch.addidentity(", 1),
    password("realm.createaccount(", 1),
    password("usernamepasswordcredentialsimpl(", 4),
    password("mosquitto_username_pw_set(", 2),
    // What is hashed in code is known to whoever reads it.
    password("bcrypt.hash(", 0),
    password("bcrypt.hashsync(", 0),
    password("bcrypt(", 0),
    password("hash::make(", 0),
    password("password.create(", 0),
    password("password_hash(", 0),
    password("passwordencoder.encode(", 0),
    password("bcryptpasswordencoder().encode(", 0),
    password("generate_password_hash(", 0),
    password("pdo->__construct(", 2),
    password("authorization_basic(", 1),
    password("createcredential(", 2),
    password("ftp(", 2),
    password("ftp_tls(", 2),
    // A realm and a host stand before the user, or nothing does.
    password("credentials(", 3),
    last_password("credentials(", 1),
    password("usernamepassword(", 1),
    // As stack traces have it, too.
    last_password("auth->attempt(", 1),
    last_password("auth::attempt(", 1),
    password("username_pw_set(", 1),
    password("authpassword(", 1),
    password("runas(", 2),
    password("execute_kw(", 2),
    password("minio(", 2),
    password("directoryentry(", 2),
    password("softap(", 1),
    password("runaswait(", 2),
    password("qnetworkproxy(", 4),
    password("network.uploadfile(", 3),
    password("network.downloadfile(", 3),
    password("dbinterface.connect(", 3),
    password("authenticationinfo(", 1),
    password("mysql2::client.new(", 2),
    last_password("client.connect(", 2),
    last_password("httpbasic(", 1),
    last_password("auth.basic(", 1),
    password("tokens.basic(", 1),
    password("sqlitedatabase.getbytes(", 0),
    secret("aes.new(", 0),
    secret("hmac.new(", 0),
    secret("jwt.sign(", 1),
    secret("jwt.verify(", 1),
    secret("jwt.decode(", 1),
    secret("secretkeyspec(", 0),
    secret("hmacshakeyfor(", 0),
    secret("fernet(", 0),
    secret("createcipher(", 1),
    secret("createdecipher(", 1),
    secret("scryptsync(", 0),
    secret("pbkdf2sync(", 0),
    secret("timestampsigner(", 0),
    secret("hextoecdsa(", 0),
    secret("sha256::new_from_slice(", 0),
    secret("hmac.hexdigest(", 1),
    secret("createcipheriv(", 1),
    secret("createdecipheriv(", 1),
    secret("openssl_encrypt(", 2),
    secret("openssl_decrypt(", 2),
    secret("cryptojs.aes.encrypt(", 1),
    secret("cryptojs.aes.decrypt(", 1),
    secret("aes.newcipher([]byte(", 0),
    secret("newcookiestore([]byte(", 0),
    secret("csrf.protect([]byte(", 0),
    secret("urlsafetimedserializer(", 0),
    secret("messageencryptor.new(", 0),
    secret("messageverifier.new(", 0),
    secret("cookieparser(", 0),
    secret("oauthhandler(", 1),
    secret("jwt.encode(", 1),
    secret("signwith(", 1),
    secret("pgp_sym_encrypt(", 1),
    secret("pgp_sym_decrypt(", 1),
    secret("aes_encrypt(", 1),
    secret("aes_decrypt(", 1),
    secret("clientsecretcredential(", 2),
    secret("from_secret(", 0),
    secret("signedstring([]byte(", 0),
    anything("algorithm.hmac256("),
    anything("algorithm.hmac384("),
    anything("algorithm.hmac512("),
    anything(".init("),
    anything(".initialize("),
    client("client("),
    client("client.new("),
    client("client::new("),
];

/// An argument that is passed over, and the blanks before it.
const MAX_ARGUMENT: usize = 160;
const MAX_PLACE: usize = 4;
/// How far behind the opening parenthesis the answer can depend on the text.
pub(super) const REACH: usize = (MAX_PLACE + 1) * MAX_ARGUMENT + syntax::MAX_VALUE + 8;

const _: () = {
    let mut at = 0;
    while at < CALLS.len() {
        assert!(CALLS[at].place <= MAX_PLACE);
        at += 1;
    }
};

pub(super) fn openings() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|call| call.opening)
}

pub(super) fn is_opening(word: &[u8]) -> bool {
    word.last() == Some(&b'(')
}

/// Whether what the call takes is made up by whoever writes it, and by nobody else.
pub(super) fn takes_chosen(opening: &[u8]) -> bool {
    const CALLS: &[&str] = &[
        "wifi.begin(",
        "softap(",
        "jwt.sign(",
        "jwt.verify(",
        "jwt.encode(",
        "jwt.decode(",
        "cookieparser(",
        "signwith(",
    ];
    ignore_case::is_any(opening, CALLS)
}

/// What may follow the parenthesis: a string, or the name of what is no password.
pub(super) fn may_follow(next: u8) -> bool {
    next.is_ascii_alphabetic() || matches!(next, b'"' | b'\'' | b'$' | b'{' | b'@')
}

/// What may be passed that is a credential, and what is known of it; the first that looks like one counts.
pub(super) fn arguments(
    text: &[u8],
    word: &Range<usize>,
) -> impl Iterator<Item = (Named, Assignment)> {
    let opening = &text[word.clone()];
    let is_called = |call: &&Call| opening.eq_ignore_ascii_case(call.opening.as_bytes());
    let mut calls = CALLS.iter().filter(is_called);
    let call = calls.clone().next();
    let first = calls.find_map(|call| argument(text, word, call));
    // An id or an address may stand before the key of a client: `Client("id", "key")`.
    let of_client = call.is_some_and(|call| call.takes == Takes::OfClient);
    let behind = if of_client { behind_argument(text, word.end) } else { None };
    let second = behind.and_then(|at| key_of_client(text, word, at));
    second.into_iter().chain(first)
}

/// What a client is given at `at`, unless it is one for tests, or the function is one of many that end so.
fn key_of_client(text: &[u8], word: &Range<usize>, at: usize) -> Option<(Named, Assignment)> {
    const OTHERS: &[&str] = &["delete", "fake", "find", "get", "mock", "stub", "test"];
    const MAX_BEFORE: usize = 16;
    let before = &text[word.start.saturating_sub(MAX_BEFORE)..word.start];
    let len = before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    if ignore_case::contains_any(&before[before.len() - len..], OTHERS) {
        return None;
    }
    let (named, found) = token(text, at, OF_CLIENT)?;
    let value = &text[found.value.clone()];
    // Paths, and accounts of Twilio.
    let is_other = value.contains(&b'/') || (value.starts_with(b"AC") && value.len() == 34);
    (!is_other).then_some((named, found))
}

/// What is passed at the place of the credential.
fn argument(text: &[u8], word: &Range<usize>, call: &Call) -> Option<(Named, Assignment)> {
    let (named, syntax) = match call.takes {
        Takes::Anything => return token(text, word.end, ANYTHING),
        Takes::OfClient => return key_of_client(text, word, word.end),
        Takes::Password => (LOGIN, Syntax::Login),
        Takes::Secret => (SECRET, Syntax::Quoted),
    };
    // A longer function has places of its own.
    let before = word.start.checked_sub(1).map(|at| text[at]);
    if before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    let mut at = word.end;
    for place in 0..call.place {
        at = match behind_argument(text, at) {
            Some(at) => at,
            // Who logs in with one argument has a token.
            None if place == 0 && call.opening == "login(" => return token(text, at, TOKEN),
            None => return None,
        };
    }
    let found = syntax::quoted_at(text, at, syntax)?;
    // What is cut off further on is part of an expression.
    let closed = text.get(found.value.end + 1).copied();
    let ends = match call.is_last {
        true => closed == Some(b')'),
        false => matches!(closed, None | Some(b',' | b')' | b'.' | b' ' | b'\n' | b'\r')),
    };
    ends.then_some((named, found))
}

/// The argument at `at`, in quotes.
fn token(text: &[u8], at: usize, named: Named) -> Option<(Named, Assignment)> {
    let found = syntax::quoted_at(text, at, Syntax::Argument)?;
    let behind = text.get(found.value.end + 1);
    matches!(behind, Some(b')' | b',' | b'.')).then_some((named, found))
}

/// Behind the comma that ends the argument at `at`.
pub(super) fn behind_argument(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at..text.len().min(at + MAX_ARGUMENT)];
    let mut depth = 0usize;
    let mut quote = None;
    for (offset, byte) in rest.iter().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(_), b'\n') => return None,
            (Some(_), _) => {}
            (None, b'(' | b'{' | b'[') => depth += 1,
            (None, b')' | b'}' | b']') => depth = depth.checked_sub(1)?,
            (None, b',') if depth == 0 => return Some(at + offset + 1),
            (None, b';') => return None,
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<&str> {
        let lower = text.to_ascii_lowercase();
        let call = CALLS.iter().find(|call| lower.contains(call.opening)).unwrap();
        let start = lower.find(call.opening).unwrap();
        let word = start..start + call.opening.len();
        let (_, found) = arguments(text.as_bytes(), &word).next()?;
        Some(&text[found.value])
    }

    #[test]
    fn the_password_is_found_at_its_place() {
        for text in [
            "server.login(\"app\", \"kdxnyjwb\")",
            "$ftp->login('app', 'kdxnyjwb') or die;",
            "ftp_login($ftp, 'app', 'kdxnyjwb');",
            "DriverManager.getConnection(\"jdbc:x:y\", \"app\", \"kdxnyjwb\")",
            "mysqli_connect('h', 'app', 'kdxnyjwb', 'db')",
            "mysql_real_connect(&c, h, \"app\", \"kdxnyjwb\", \"db\", 0)",
            "new PDO(\"mysql:host=h\", 'app', 'kdxnyjwb')",
            "new \\PDO(\"mysql:host=h\", 'app', 'kdxnyjwb')",
            "DBI->connect(\"dbi:mysql:x\", \"app\", \"kdxnyjwb\")",
            "WiFi.begin(ssid, \"kdxnyjwb\");",
            "Sql.newInstance(\"jdbc:h2:x\", \"sa\", \"kdxnyjwb\")",
            "epgsql:connect(\"db\", \"app\", \"kdxnyjwb\", [])",
            "Credentials(\"Nexus\", \"nexus.local\", \"app\", \"kdxnyjwb\")",
            "Credentials(\"app\", \"kdxnyjwb\")",
            "MqttClient.usernamePassword(\"app\", \"kdxnyjwb\")",
            "#2 Guard.php(44): Auth->attempt('app@acme.io', 'kdxnyjwb')",
            "Auth::attempt('app@acme.io', 'kdxnyjwb')",
            "new PasswordAuthentication(\"app\", \"kdxnyjwb\".toCharArray())",
            "jwt.sign({ id, name: 'x, y' }, 'kdxnyjwb', { expiresIn: 1 })",
            "client.login('kdxnyjwb');",
            "await bcrypt.hash('kdxnyjwb', 10)",
            "password_hash('kdxnyjwb', PASSWORD_DEFAULT)",
            "new BCryptPasswordEncoder().encode(\"kdxnyjwb\")",
            "token.SignedString([]byte(\"kdxnyjwb\"))",
            "client.username_pw_set(\"app\", \"kdxnyjwb\")",
            "jwt.verify(token, \"kdxnyjwb\", done)",
            "new SecretKeySpec(\"kdxnyjwb\".getBytes(), \"AES\")",
            "Fernet(b\"kdxnyjwb\")",
            "crypto.createCipheriv('aes-256-cbc', 'kdxnyjwb', iv)",
            "openssl_encrypt($text, 'aes-256-cbc', 'kdxnyjwb', 0, $iv)",
            "CryptoJS.AES.decrypt(text, \"kdxnyjwb\")",
            "sessions.NewCookieStore([]byte(\"kdxnyjwb\"))",
            "jwt.encode(\n    payload,\n    \"kdxnyjwb\",\n)",
            "crypto.createCipher('aes-256-cbc', 'kdxnyjwb')",
            "OpenSSL::HMAC.hexdigest('sha256', 'kdxnyjwb', data)",
            "client.connect(\"id\", \"app\", \"kdxnyjwb\")",
            "new DirectoryEntry(\"LDAP://h\", \"app\", \"kdxnyjwb\")",
        ] {
            assert_eq!(found(text), Some("kdxnyjwb"), "{text}");
        }
    }

    #[test]
    fn what_is_no_string_or_elsewhere_is_not() {
        for text in [
            "server.login(user, password)",
            "server.login(\"app\" + x)",
            "do_login(\"app\", \"kdxnyjwb\")",
            "login(\"app\", \"kdx\" + \"nyjwb\", \"x\")".replace(" + ", "+").as_str(),
            "jwt.sign(payload); x(\"a\", \"b\")",
            "getConnection(url, \"app\")",
            "Credentials(\"Nexus\", \"nexus.local\", user)",
            "jwt.verify(token, key)",
            "crypto.createCipheriv('aes-256-cbc', key, iv)",
            "Auth::attempt(['email' => $mail, 'password' => $word], true)",
            "login(\"app",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
