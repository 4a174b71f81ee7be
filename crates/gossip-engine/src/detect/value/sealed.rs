//! What was made of a secret and does not give it back: hashes, what was encrypted, tokens without their
//! signature.

use super::form::is_hex;
use super::has;
use crate::decode::base64;

/// How what was encrypted begins, or where it is kept.
const ENCRYPTED: [&[u8]; 12] = [
    // Jasypt and Cirrus.
    b"ENC(",
    b"ENCRYPTED[",
    // Programs that say no more than that.
    b"encrypted:",
    b"enc:",
    // Vault's transit, by the version of its key, and ejson.
    b"vault:v",
    b"EJ[",
    // In base64: Amazon's keys, and its library's messages; Windows, for one user; Firefox.
    b"AQICAH",
    b"AYADe",
    b"AQAAANCMnd8BFdERjHoAwE",
    b"MDoEEPgAAAA",
    // TeamCity keeps it elsewhere.
    b"credentialsJSON:",
    // The name of what decrypts it.
    b"kms:",
];

/// What opens nothing without another key: that of a program which says so at its start, what Kubernetes'
/// controller of sealed secrets made, which begins with the length of an encrypted key, 512, and values of
/// Hiera and SOPS.
pub(in crate::detect) fn is_encrypted(value: &[u8]) -> bool {
    const MIN_SEALED: usize = 256;
    let is_sealed = value.len() >= MIN_SEALED
        && matches!(value, [b'A', b'g', b'A'..=b'D', ..])
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
    // Magento: the number of the key, and that of the cipher.
    let of_magento = matches!(value, [key, b':', cipher, b':', ..]
        if key.is_ascii_digit() && cipher.is_ascii_digit() && value.len() >= 40);
    let of_mule = value.starts_with(b"![") && value.ends_with(b"]");
    ENCRYPTED.iter().any(|start| value.starts_with(start))
        || of_magento
        || of_mule
        || has(value, b"ENC[")
        || is_sealed
}

/// What a password was made into, or a fingerprint: `pbkdf2_sha256$10000$…`, `sha256:04ce2a…`,
/// `51:C4:0C:6D:…`.
pub(super) fn is_hash(value: &[u8]) -> bool {
    let algorithms =
        ["pbkdf2", "bcrypt", "argon2", "scrypt", "sha1$", "sha256$", "sha512$", "md5$", "{SSHA"];
    let begins = |names: &[&str]| names.iter().any(|name| value.starts_with(name.as_bytes()));
    let is_pair = |pair: &[u8]| pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
    // Those of MD5 and SHA-1; longer ones may be keys.
    let in_pairs =
        || matches!(value.len(), 47 | 59) && value.split(|byte| *byte == b':').all(is_pair);
    // As Tomcat keeps them: salt, iterations and digest.
    let of_tomcat = || {
        let mut parts = value.split(|byte| *byte == b'$');
        let [salt, count, digest] = [(); 3].map(|()| parts.next().unwrap_or(b""));
        salt.len() >= 32 && is_hex(salt) && is_hex(digest) && count.iter().all(u8::is_ascii_digit)
    };
    // As PostgreSQL and MySQL keep them.
    let of_database = || match value {
        [b'm', b'd', b'5', digits @ ..] => is_hex(digits) && digits.len() == 32,
        [b'*', digits @ ..] => is_hex(digits) && digits.len() == 40,
        _ => value.starts_with(b"SCRAM-SHA-"),
    };
    (value.iter().filter(|byte| **byte == b'$').count() >= 2 && begins(&algorithms))
        || of_database()
        || of_tomcat()
        || begins(&["sha256:", "sha512:", "sha1:", "SHA256:", "grub.pbkdf2."])
        || in_pairs()
        // Behind a user, as servers of pages have them.
        || [&b":$2a$"[..], b":$2b$", b":$2y$", b":$5$", b":$6$"].iter().any(|mark| has(value, mark))
}

/// The head or the claims of a signed token: without its signature it opens nothing. Base64 of an object
/// whose strings are short, as those of a secret are not.
pub(super) fn is_part_of_token(value: &[u8]) -> bool {
    const MAX_LEN: usize = 512;
    /// No name and no number is longer; identifiers are in groups.
    const MAX_RUN: usize = 16;
    let value = value.strip_suffix(b".").unwrap_or(value);
    if !value.starts_with(b"eyJ") || value.len() > MAX_LEN {
        return false;
    }
    let mut bytes = [0u8; MAX_LEN];
    let digits = value.iter().take_while(|byte| **byte != b'=').count();
    let len = base64::decode_into(&value[..digits], &mut bytes);
    let object = &bytes[..len];
    let is_whole = len * 4 / 3 + 2 >= digits;
    let is_text = object.iter().all(|byte| (b' '..=b'~').contains(byte));
    let mut runs = object.split(|byte| !byte.is_ascii_alphanumeric());
    is_whole && is_text && runs.all(|run| run.len() <= MAX_RUN)
}
