//! Every shape that secrets are known to be written in, with random values, and the same shapes with
//! what is no secret in them. Shares nothing with the rules' own examples.
//!
//! `§` in a shape is where the value goes.

mod chosen;
mod names;
mod shapes;
mod unlisted;
mod vendors;
mod words;

use crate::Request;
use crate::case::Case;
use crate::random::{BASE62, BASE64, BASE64URL, DIGITS, HEX, LOWER, LOWERNUM, Random, UPPER};
use crate::table::{self, Counts};
use shapes::{Family, SHAPES};

/// How often each shape is filled.
const INSTANCES: u64 = 12;

/// What stands in a value's place in real code, and is none.
const STAND_INS: [&str; 34] = [
    "password",
    "changeme",
    "your-password-here",
    "<password>",
    "${DB_PASSWORD}",
    "{{ vault.pw }}",
    "********",
    "xxxxxxxxxxxx",
    "null",
    "undefined",
    "example",
    "REPLACE_ME",
    "todo",
    "$PASSWORD",
    "%PASSWORD%",
    "#{ENV['PW']}",
    "secret",
    "none",
    "placeholder-value",
    "my_secret_password",
    "insert-token-here",
    "com.example.security.Token",
    "application/json",
    "UserPasswordField",
    "get_password_from_store",
    "not-a-real-token",
    "string",
    "dummy-value",
    "EXAMPLE_TOKEN",
    "foobar",
    "test",
    "default",
    "0000000000000000",
    "aaaaaaaaaaaaaaaa",
];

struct Labelled {
    family: Family,
    is_secret: bool,
}

pub(crate) fn measure(request: &Request) -> Result<(), String> {
    let (labels, cases) = cases();
    let mut header = vec!["shapes".to_owned(), "secrets".to_owned(), "near-misses".to_owned()];
    let mut columns = Vec::new();
    for scanner in &request.scanners {
        header.push(format!("{} P/R/F1", scanner.name()));
        let hits = scanner.hits("generated", &cases, &request.work)?;
        if request.misses && scanner.name() == "gossip" {
            for ((label, case), hits) in labels.iter().zip(&cases).zip(&hits) {
                if label.is_secret == hits.is_empty() {
                    let rules: Vec<_> = hits.iter().map(|hit| hit.rule.as_str()).collect();
                    let text = String::from_utf8_lossy(&case.text);
                    println!("{:?} {} {rules:?} {}", label.family, label.is_secret, text.trim());
                }
            }
        }
        columns.push(hits);
    }
    let row = |name: String, of: &dyn Fn(&Labelled) -> bool| {
        let chosen = || labels.iter().enumerate().filter(|(_, label)| of(label));
        let secrets = chosen().filter(|(_, label)| label.is_secret).count();
        let mut row = vec![name, secrets.to_string(), (chosen().count() - secrets).to_string()];
        for hits in &columns {
            let mut counts = Counts::default();
            chosen().for_each(|(at, label)| counts.add(label.is_secret, !hits[at].is_empty()));
            row.push(counts.shown());
        }
        row
    };
    let mut rows: Vec<_> = Family::ALL
        .iter()
        .map(|family| row(family.name().to_owned(), &|label: &Labelled| label.family == *family))
        .collect();
    rows.push(row("**all**".to_owned(), &|_| true));
    table::print("Generated shapes", &header, &rows);
    Ok(())
}

fn cases() -> (Vec<Labelled>, Vec<Case>) {
    let mut labels = Vec::new();
    let mut cases = Vec::new();
    let mut random = Random::new(20);
    let mut add = |family, is_secret, path: &str, text: Vec<u8>| {
        labels.push(Labelled { family, is_secret });
        cases.push(Case { path: path.to_owned(), text });
    };
    for (family, kind, path, shape) in SHAPES {
        for instance in 0..INSTANCES {
            let value = value(*kind, &mut random);
            add(*family, true, path, fill(*family, shape, &value));
            if instance % 2 == 0 && *family != Family::Encoding {
                let stand_in = random.pick(&STAND_INS);
                add(*family, false, path, fill(*family, shape, stand_in));
            }
        }
    }
    for (path, shape) in names::SHAPES {
        for (kind, names) in names::NAMES {
            for name in *names {
                let value = value(*kind, &mut random);
                let text = shape.replace('¤', name).replace('§', &value);
                add(Family::Name, true, path, text.into_bytes());
            }
        }
        for name in names::OTHERS {
            let value = value(Value::Token, &mut random);
            let text = shape.replace('¤', name).replace('§', &value);
            add(Family::Name, false, path, text.into_bytes());
        }
    }
    for (kind, path, shape) in unlisted::SHAPES {
        for instance in 0..INSTANCES {
            let shape = unlisted::named(shape, &unlisted::name(&mut random));
            let value = value(*kind, &mut random);
            add(Family::Unlisted, true, path, shape.replace('§', &value).into_bytes());
            if instance % 2 == 0 {
                let stand_in = random.pick(&STAND_INS);
                add(Family::Unlisted, false, path, shape.replace('§', stand_in).into_bytes());
            }
        }
    }
    for (name, shape) in vendors::FORMATS {
        for _ in 0..INSTANCES / 2 {
            let token = vendors::fill(shape, &mut random);
            let line = random.pick(&["key = \"§\"\n", "see § in the log\n", "TOKEN=§\n"]);
            let path = format!("{name}.txt");
            add(Family::Vendor, true, &path, line.replace('§', &token).into_bytes());
            // A token that was cut short is none.
            let cut = &token[..token.len() / 2];
            add(Family::Vendor, false, &path, format!("see {cut} in the log\n").into_bytes());
        }
    }
    for (path, shape) in chosen::SHAPES {
        for instance in 0..INSTANCES {
            let password = chosen::password(&mut random);
            add(Family::Chosen, true, path, shape.replace('§', &password).into_bytes());
            if instance % 2 == 0 {
                let other = random.pick(chosen::OTHERS);
                add(Family::Chosen, false, path, shape.replace('§', other).into_bytes());
            }
        }
    }
    for (path, shape) in words::SHAPES {
        for instance in 0..INSTANCES {
            let password = words::password(&mut random);
            add(Family::Word, true, path, shape.replace('§', &password).into_bytes());
            if instance % 2 == 0 {
                let other = random.pick(words::OTHERS);
                add(Family::Word, false, path, shape.replace('§', other).into_bytes());
            }
        }
    }
    (labels, cases)
}

/// What values look like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Password,
    Short,
    Token,
    Hex,
    Letters,
    Basic,
    Bytes,
    Uuid,
    /// With what a shell would otherwise take for its own.
    Dollar,
}

fn value(kind: Value, random: &mut Random) -> String {
    match kind {
        Value::Password => match random.below(5) {
            0 => random.between(LOWER, 8, 12),
            1 => random.between(BASE62, 8, 16),
            2 => random.between(LOWERNUM, 8, 14),
            3 => format!("{}!{}", random.between(BASE62, 5, 8), random.between(DIGITS, 2, 4)),
            _ => format!("{}{}", random.text(UPPER, 1), random.between(LOWERNUM, 8, 12)),
        },
        Value::Short => random.between(LOWERNUM, 5, 7),
        Value::Token => match random.below(4) {
            0 => random.between(BASE62, 24, 48),
            1 => random.text(HEX, 32),
            2 => random.text(BASE64URL, 43),
            _ => random.text(LOWERNUM, 32),
        },
        Value::Hex => random.text(HEX, 40),
        Value::Letters => random.between(&format!("{LOWER}{UPPER}"), 20, 32),
        Value::Basic => {
            let text =
                format!("{}:{}", random.between(LOWER, 4, 8), random.between(BASE62, 10, 16));
            base64(text.as_bytes())
        }
        Value::Uuid => [8, 4, 4, 4, 12].map(|len| random.text(HEX, len)).join("-"),
        Value::Dollar => {
            format!("{}${}", random.between(BASE62, 6, 9), random.between(BASE62, 4, 7))
        }
        Value::Bytes => {
            let numbers: Vec<_> = (0..16).map(|_| random.below(256).to_string()).collect();
            numbers.join(", ")
        }
    }
}

/// Fills a shape; what is encoded is filled first.
fn fill(family: Family, shape: &str, value: &str) -> Vec<u8> {
    if family != Family::Encoding {
        return shape.replace('§', value).into_bytes();
    }
    let line = format!("db_password = \"{value}\"\napi_token = \"{value}{value}\"\n");
    let encoded = match shape.split_once(':').map_or(shape, |(encoding, _)| encoding) {
        "base64" => base64(line.as_bytes()),
        "base64x2" => base64(base64(line.as_bytes()).as_bytes()),
        "base64x3" => base64(base64(base64(line.as_bytes()).as_bytes()).as_bytes()),
        "hex" => line.bytes().map(|byte| format!("{byte:02x}")).collect(),
        "u-escapes" => line.chars().map(|c| format!("\\u{:04x}", c as u32)).collect(),
        "x-escapes" => line.bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
        "percent" => line.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        _ => return line.encode_utf16().flat_map(u16::to_le_bytes).collect(),
    };
    format!("data: {encoded}\n").into_bytes()
}

fn base64(bytes: &[u8]) -> String {
    let digits = BASE64.as_bytes();
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = char::from(digits[(word >> (18 - 6 * at) & 63) as usize]);
            text.push(if at <= chunk.len() { digit } else { '=' });
        }
    }
    text
}
