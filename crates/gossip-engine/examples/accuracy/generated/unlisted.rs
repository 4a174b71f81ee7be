//! Services that no list has: their names are made up, so that only what stands around a key tells.

use super::Value::{self, Hex, Letters, Token, Uuid};
use crate::random::Random;

/// `¤` is the service's name as a word, `Ȼ` with a capital, `Ħ` in capitals.
#[rustfmt::skip]
pub(super) const SHAPES: &[(Value, &str, &str)] = &[
    (Token, ".env", "Ħ_API_KEY=§\n"),
    (Hex, ".env", "Ħ_KEY=§\n"),
    (Uuid, ".env", "Ħ_TOKEN=§\n"),
    (Letters, ".env", "Ħ_SECRET=§\n"),
    (Hex, ".env", "Ħ_APP_KEY='§'\n"),
    (Token, ".env", "Ħ_ACCESS=§\n"),
    (Token, ".env", "Ħ_PAT=§\n"),
    (Token, ".env", "Ħ_CREDENTIALS=§\n"),
    (Token, ".env", "Ħ_WEBHOOK_SECRET=§\n"),
    (Token, ".env", "Ħ_LICENSE=§\n"),
    (Token, ".env", "Ħ_AUTH=§\n"),
    (Token, ".env", "Ħ_BEARER=§\n"),
    (Token, ".env", "Ħ_APIKEY_PROD=§\n"),
    (Token, "a.py", "¤_api_key = \"§\"\n"),
    (Hex, "a.py", "¤_key = '§'\n"),
    (Hex, "a.py", "¤ = Client('§')\n"),
    (Token, "a.py", "client = Ȼ(api_key='§')\n"),
    (Token, "a.py", "¤.api_key = \"§\"\n"),
    (Token, "a.py", "¤.init(\"§\")\n"),
    (Uuid, "a.js", "const ¤Token = '§';\n"),
    (Token, "a.js", "new Ȼ({ key: '§' })\n"),
    (Token, "a.js", "Ȼ.setApiKey('§');\n"),
    (Hex, "a.js", "Ȼ.initialize('§')\n"),
    (Token, "a.rb", "Ȼ.configure { |c| c.api_key = '§' }\n"),
    (Token, "a.go", "client := ¤.NewClient(\"§\")\n"),
    (Token, "A.java", "new ȻClient.Builder().apiKey(\"§\").build();\n"),
    (Token, "a.yml", "¤:\n  api_key: §\n"),
    (Hex, "a.yml", "¤:\n  key: §\n"),
    (Token, "a.yml", "¤:\n  token: §\n"),
    (Token, "a.yml", "¤Token: §\n"),
    (Token, "a.json", "\"¤\": {\"apiKey\": \"§\"}\n"),
    (Hex, "a.json", "\"¤\": {\"key\": \"§\"}\n"),
    (Token, "a.toml", "[¤]\ntoken = \"§\"\n"),
    (Token, "a.ini", "[¤]\nkey=§\n"),
    (Token, "a.properties", "¤.api.key=§\n"),
    (Hex, "a.properties", "¤.key=§\n"),
    (Token, "a.xml", "<ȻApiKey>§</ȻApiKey>\n"),
    (Token, "a.xml", "<add key=\"Ȼ.ApiKey\" value=\"§\"/>\n"),
    (Token, "a.sh", "curl -H \"X-Ȼ-Token: §\" https://api.¤.io/v1\n"),
    (Token, "a.sh", "curl -H \"X-Ȼ-Key: §\" https://api.¤.io/v1\n"),
    (Token, "a.sh", "curl https://api.¤.io/v1?token=§\n"),
    (Token, "a.sh", "curl https://api.¤.io/v1?key=§\n"),
    (Token, "a.sh", "¤ login --token §\n"),
    (Hex, "a.sh", "¤ auth --key §\n"),
    (Token, "a.sh", "¤ --api-key=§ list\n"),
    (Token, "a.txt", "¤ token: §\n"),
    (Token, "a.txt", "Ȼ API key is §\n"),
    (Hex, "a.txt", "¤ key §\n"),
    (Token, "a.txt", "¤_token-§\n"),
    (Token, "a.txt", "¤_live_§\n"),
    (Token, "a.txt", "¤_sk_§\n"),
    (Token, "a.txt", "¤_pat_§\n"),
    (Token, "a.txt", "¤-api-§\n"),
    (Token, "a.py", "x = \"¤_live_§\"\n"),
    (Token, "a.py", "x = \"¤_secret_§\"\n"),
    (Token, "a.py", "x = \"¤_sk_test_§\"\n"),
    (Token, "a.py", "x = \"¤api_§\"\n"),
];

/// A name of two or three syllables that nobody has.
pub(super) fn name(random: &mut Random) -> String {
    const SYLLABLES: [&str; 16] = [
        "zor", "vex", "klu", "brin", "tavo", "quim", "dra", "plo", "xan", "yur", "fen", "gro",
        "lum", "wik", "mav", "jol",
    ];
    const ENDINGS: [&str; 6] = ["ify", "ly", "io", "ex", "ora", "ix"];
    let syllables: String = (0..2).map(|_| random.pick(&SYLLABLES)).collect();
    syllables + random.pick(&ENDINGS)
}

pub(super) fn named(shape: &str, name: &str) -> String {
    let capital = name[..1].to_ascii_uppercase() + &name[1..];
    shape.replace('¤', name).replace('Ȼ', &capital).replace('Ħ', &name.to_ascii_uppercase())
}
