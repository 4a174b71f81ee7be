//! What users are called, and what they are called by.

use crate::ignore_case;

/// Users that machines and programs have, and that are no other words.
#[rustfmt::skip]
pub(super) const OF_MACHINES: &[&str] = &[
    "admin", "administrador", "administrateur", "administrator", "amministratore", "beheerder", "ftpuser", "mysql", "oracle", "pi",
    "postgres", "root", "sa", "superadmin", "superuser", "svc", "sysadmin", "sysdba", "ubnt", "ubuntu", "user01", "user1", "webadmin",
    "webmaster", "wpadmin",
];

/// Users who are called as other things are.
#[rustfmt::skip]
pub(super) const ACCOUNTS: &[&str] = &[
    "backup", "beheer", "ci", "demo", "deploy", "dev", "enable", "ftp", "guest", "info", "jenkins", "kali", "maintenance", "manager",
    "master", "monitor", "monitoring", "office", "operator", "ops", "qa", "readonly", "scan", "scanner", "scott", "service",
    "staging", "student", "support", "sys", "system", "test", "tester", "vagrant",
];

/// What stands before a user where people write it down.
#[rustfmt::skip]
pub(super) const LABELS: &[&str] = &[
    "account", "acct", "benutzer", "benutzername", "compte", "conta", "cuenta", "gebruiker", "gebruikersnaam", "identifiant",
    "inlog", "konto", "kullanıcı", "login", "logon", "nutzer", "user", "username", "usuario", "usuari", "usuário", "utente", "utilisateur",
    "uživatel", "użytkownik", "логин", "юзер", "пользователь",
];

/// What names of code end in that hold one.
#[rustfmt::skip]
const FIELDS: &[&str] = &[
    "user", "username", "user_name", "usr", "uname", "userid", "user_id", "uid", "login", "email",
];

/// Users of whom a slash and a value behind are enough: nobody lists them with anything else.
#[rustfmt::skip]
const ALWAYS: &[&str] = &[
    "admin", "administrator", "backup", "deploy", "guest", "oracle", "postgres", "root", "sa", "service", "support", "sys",
    "sysadmin", "system", "sysdba", "ubuntu",
];

/// Whether machines and programs have such a user, and nothing else is called so.
pub(super) fn is_always(name: &[u8]) -> bool {
    ignore_case::is_any(name, ALWAYS)
}

/// Whether a name of code is that of a user.
pub(super) fn is_field(name: &[u8]) -> bool {
    ignore_case::ends_with_any(name, FIELDS)
}
