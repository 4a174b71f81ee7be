//! gitleaks' configurations mean here what they mean there: what its documentation says of each
//! field, by what is found.

use std::collections::BTreeMap;

use gossip_engine::{
    Engine, Options, Origin, RuleFault, RuleFileError, RuleNote, RuleSet, Scratch,
};

use crate::encodings::{STANDARD, base64};

/// Files by name; the first argument of `load` is the one that is given.
fn load(files: &[(&str, &str)]) -> Result<RuleSet, RuleFileError> {
    let by_name: BTreeMap<&str, &str> = files.iter().copied().collect();
    let (name, text) = files[0];
    RuleSet::load(name, text, Origin::User, &mut |_, path| {
        let text = by_name.get(path).ok_or_else(|| format!("{path}: no such file"))?;
        Ok((path.to_owned(), (*text).to_owned()))
    })
}

fn refused(text: &str) -> RuleFileError {
    load(&[("c.toml", text)]).unwrap_err()
}

/// Ids and secrets that a set finds in a text of this path.
fn found(rules: RuleSet, path: &str, text: &str) -> Vec<(String, String)> {
    let engine = Engine::new(rules, Options::default());
    let mut found = Vec::new();
    engine.scan(&mut Scratch::new(), text.as_bytes(), Some(path.as_bytes()), &mut |finding| {
        let secret = String::from_utf8(finding.secret().expose().to_vec()).unwrap();
        found.push((finding.rule().id().to_owned(), secret));
    });
    found
}

fn ids(rules: &RuleSet) -> Vec<&str> {
    let mut ids: Vec<_> = rules.iter().map(|rule| rule.id()).collect();
    ids.sort_unstable();
    ids
}

const BASE: &str = r#"
    title = "base"
    [[rules]]
    id = "acme"
    description = "ACME key"
    regex = '''acme_([a-z0-9]{8})'''
    entropy = 1.0
    keywords = ["acme"]
    tags = ["key"]
    [[rules]]
    id = "other"
    regex = '''other_[a-z0-9]{8}'''
"#;

const EXTENDS: &str = "[extend]\npath = 'base.toml'\n";
const TEXT: &str = "k = acme_q8zr2lmt other_w7yx3knv";

fn over_base(text: &str) -> RuleSet {
    let text = format!("{EXTENDS}{text}");
    load(&[("c.toml", text.as_str()), ("base.toml", BASE)]).unwrap()
}

#[test]
fn a_file_that_is_extended_brings_its_rules() {
    let rules = over_base("[[rules]]\nid = 'mine'\nregex = 'mine_[0-9]{8}'\n");
    assert_eq!(ids(&rules), ["acme", "mine", "other"]);
}

#[test]
fn disabled_rules_of_the_extended_file_are_gone() {
    let text = "[extend]\npath = 'base.toml'\ndisabledRules = ['acme']\n";
    let rules = load(&[("c.toml", text), ("base.toml", BASE)]).unwrap();
    assert_eq!(ids(&rules), ["other"]);
}

#[test]
fn a_chain_is_followed_for_two_files_and_what_follows_is_noted() {
    let rule = |id: &str, next: &str| {
        format!("[extend]\npath = '{next}'\n[[rules]]\nid = '{id}'\nregex = '{id}_[0-9]{{4}}'\n")
    };
    let (a, b, c) = (rule("a", "b.toml"), rule("b", "c.toml"), rule("c", "d.toml"));
    let rules = load(&[("a.toml", &a), ("b.toml", &b), ("c.toml", &c)]).unwrap();
    assert_eq!(ids(&rules), ["a", "b", "c"]);
    assert!(matches!(rules.notes(), [RuleNote::ChainTooLong { file, .. }] if file == "c.toml"));
}

#[test]
fn the_default_rules_count_as_a_file_of_a_chain() {
    let extends = |what: &str| format!("[extend]\n{what}\n");
    let top = extends("path = 'b.toml'");
    let (default, far) = (extends("useDefault = true"), extends("path = 'c.toml'"));
    assert!(load(&[("a.toml", &top), ("b.toml", &default)]).unwrap().has_builtin());
    let rules = load(&[("a.toml", &top), ("b.toml", &far), ("c.toml", &default)]).unwrap();
    assert!(rules.is_empty() && !rules.has_builtin());
    let note = rules.notes()[0].to_string();
    assert!(note.starts_with("c.toml:2:14: `extend` is not followed"), "{note}");
}

#[test]
fn a_chain_that_leads_back_ends() {
    let text = "[extend]\npath = 'c.toml'\n[[rules]]\nid = 'a'\nregex = 'abc'\n";
    assert_eq!(ids(&load(&[("c.toml", text)]).unwrap()), ["a"]);
}

#[test]
fn a_rule_that_says_only_a_part_overrides_that_part() {
    let all = [("acme", "q8zr2lmt"), ("other", "other_w7yx3knv")];
    let all = all.map(|(id, secret)| (id.to_owned(), secret.to_owned())).to_vec();
    let with = |part: &str| {
        let rules = over_base(&format!("[[rules]]\nid = 'acme'\n{part}\n"));
        assert_eq!(rules.len(), 2, "{part}");
        let found = found(rules.clone(), "src/a.txt", TEXT);
        (rules, found)
    };
    assert_eq!(with("tags = ['more']").1, all);
    assert_eq!(with("tags = ['more']").0.get("acme").unwrap().tags(), ["key", "more"]);
    let (rules, same) = with("description = 'Ours'");
    assert_eq!((rules.get("acme").unwrap().description(), same), ("Ours", all.clone()));
    assert_eq!(with("entropy = 7.0").1, all[1..]);
    // Keywords are added: one of them must be there, and the base's is.
    assert_eq!(with("keywords = ['puppy']").1, all);
    // A rule that had none has one now.
    let rules = over_base("[[rules]]\nid = 'other'\nkeywords = ['Puppy']\n");
    assert_eq!(found(rules.clone(), "a", TEXT), all[..1]);
    assert_eq!(found(rules, "a", &format!("pUPPY {TEXT}")), all);
    assert_eq!(with("path = '\\.py$'").1, all[1..]);
    let whole = ("acme".to_owned(), "acme_q8".to_owned());
    assert_eq!(with("regex = 'acme_[a-z0-9]{2}'").1, [whole, all[1].clone()]);
    assert_eq!(with("[[rules.allowlists]]\nstopwords = ['q8zr']").1, all[1..]);
    assert_eq!(with("[rules.allowlist]\npaths = ['src/']").1, all[1..]);
    let (rules, _) = with("regex = '(ac)me_([a-z0-9]{8})'\nsecretGroup = 2");
    assert_eq!(found(rules, "a", TEXT)[0].1, "q8zr2lmt");
}

#[test]
fn rules_that_gitleaks_calls_otherwise_are_adjusted_and_disabled_here() {
    let token = gossip_engine::template::expand("ghp_{base62:30}{crc32}", 7).unwrap().text;
    let text = format!("see {token}\n");
    let finds = |config: &str| {
        let rules = load(&[("c.toml", &format!("[extend]\nuseDefault = true\n{config}"))]).unwrap();
        found(rules, "src/a.txt", &text).len()
    };
    assert_eq!(finds(""), 1);
    assert_eq!(finds("[[rules]]\nid = 'github-pat'\n[[rules.allowlists]]\npaths = ['src/']"), 0);
    assert_eq!(finds("[[allowlists]]\ntargetRules = ['github-pat']\npaths = ['src/']"), 0);
    // One that matches something else is another rule: ours finds more than gitleaks' of that name.
    assert_eq!(finds("[[rules]]\nid = 'github-pat'\nregex = 'nothing_[0-9]{9}'"), 1);
    let rules = load(&[(
        "c.toml",
        "[extend]\nuseDefault = true\ndisabledRules = ['generic-api-key', 'github-pat']\n\
         [[rules]]\nid = 'sidekiq-sensitive-url'\nentropy = 2\n",
    )])
    .unwrap();
    assert!(rules.get("generic-password").is_none() && rules.get("github-token").is_none());
    assert!(matches!(rules.notes(), [RuleNote::NothingToAdjust { .. }]), "{:?}", rules.notes());
}

#[test]
fn a_rule_that_requires_another_finds_nothing_without_it() {
    let rules = |within: &str| {
        let text = format!(
            "[[rules]]\nid = 'password'\nregex = '''password = \"([^\"]+)\"'''\n\
             [[rules.required]]\nid = 'user'\n{within}\n\
             [[rules]]\nid = 'user'\nregex = '''user = \"([^\"]+)\"'''\nskipReport = true\n"
        );
        load(&[("c.toml", &text)]).unwrap()
    };
    let secrets = |within: &str, text: &str| -> Vec<String> {
        found(rules(within), "a.txt", text).into_iter().map(|(_, secret)| secret).collect()
    };
    let pair = "user = \"bob\"\npassword = \"tr0ub4dor\"\n";
    assert_eq!(secrets("", pair), ["tr0ub4dor"]);
    assert_eq!(secrets("", "password = \"tr0ub4dor\"\n"), [] as [&str; 0]);
    assert_eq!(secrets("", "user = \"bob\"\n"), [] as [&str; 0]);
    // In either order, and far apart.
    let far = format!("password = \"tr0ub4dor\"\n{}user = \"bob\"\n", "x\n".repeat(5_000));
    assert_eq!(secrets("", &far), ["tr0ub4dor"]);
    assert_eq!(secrets("withinLines = 5", &far), [] as [&str; 0]);
    assert_eq!(secrets("withinLines = 1", pair), ["tr0ub4dor"]);
    let aside = "user = \"bob\"                         password = \"tr0ub4dor\"\n";
    assert_eq!(secrets("withinColumns = 60", aside), ["tr0ub4dor"]);
    assert_eq!(secrets("withinColumns = 10", aside), [] as [&str; 0]);
    assert_eq!(secrets("withinLines = 0\nwithinColumns = 60", pair), [] as [&str; 0]);
    // Columns are those of each line, so that both distances make a rectangle.
    assert_eq!(secrets("withinColumns = 3", pair), [] as [&str; 0]);
    assert_eq!(secrets("withinColumns = 4", pair), ["tr0ub4dor"]);
    assert_eq!(secrets("withinLines = 1\nwithinColumns = 4", pair), ["tr0ub4dor"]);
}

#[test]
fn all_that_a_rule_requires_must_be_there_but_not_what_those_require() {
    let rule = |id: &str, requires: &[&str]| {
        let required = requires.iter().map(|id| format!("[[rules.required]]\nid = '{id}'\n"));
        let required: String = required.collect();
        format!("[[rules]]\nid = '{id}'\nregex = '''{id}_[a-z0-9]{{8}}'''\n{required}")
    };
    let ids = |config: &str, text: &str| {
        let found = found(load(&[("c.toml", config)]).unwrap(), "a", text);
        found.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    let two = rule("aaa", &["bbb", "ccc"]) + &rule("bbb", &[]) + &rule("ccc", &[]);
    assert_eq!(ids(&two, "aaa_q8zr2lmt bbb_w7yx3knv"), ["bbb"]);
    assert_eq!(ids(&two, "aaa_q8zr2lmt bbb_w7yx3knv ccc_h5vb9pdc"), ["aaa", "bbb", "ccc"]);
    let chain = rule("aaa", &["bbb"]) + &rule("bbb", &["ccc"]) + &rule("ccc", &[]);
    assert_eq!(ids(&chain, "aaa_q8zr2lmt bbb_w7yx3knv"), ["aaa"]);
    let each_other = rule("aaa", &["bbb"]) + &rule("bbb", &["aaa"]);
    assert_eq!(ids(&each_other, "aaa_q8zr2lmt bbb_w7yx3knv"), ["aaa", "bbb"]);
}

#[test]
fn both_spellings_of_allowlists_are_read_and_not_both_in_one_place() {
    let rule = "[[rules]]\nid = 'a'\nregex = 'abc[0-9]{4}'\n";
    let finds = |lists: &str| {
        found(load(&[("c.toml", &format!("{rule}{lists}"))]).unwrap(), "x.go", "abc7391").len()
    };
    assert_eq!(finds(""), 1);
    for lists in [
        "[rules.allowlist]\nregexes = ['73']\n",
        "[[rules.allowlists]]\nregexes = ['73']\n",
        "[allowlist]\nregexes = ['73']\n",
        "[[allowlists]]\nstopwords = ['73']\n",
        "[[allowlists]]\ntargetRules = ['a']\npaths = ['\\.go$']\n",
        "[[allowlists]]\ncondition = 'AND'\nregexes = ['73']\npaths = ['\\.go$']\n",
    ] {
        assert_eq!(finds(lists), 0, "{lists}");
    }
    assert_eq!(finds("[[allowlists]]\ncondition = 'and'\nregexes = ['73']\npaths = ['py$']\n"), 1);

    let both = format!("{rule}[rules.allowlist]\npaths=['a']\n[[rules.allowlists]]\npaths=['b']\n");
    let error = refused(&both);
    assert_eq!((error.fault, error.at.unwrap().line), (RuleFault::OldAndNewAllowlists, 4));
    let both = format!("{rule}[allowlist]\npaths = ['a']\n[[allowlists]]\npaths = ['b']\n");
    assert_eq!(refused(&both).fault, RuleFault::OldAndNewAllowlists);
    // The second is a default rule of gitleaks, and not there without `useDefault`.
    for id in ["nope", "github-pat"] {
        let list = format!("[[allowlists]]\ntargetRules = ['a', '{id}']\npaths = ['a']\n");
        let error = refused(&format!("{rule}{list}"));
        let fault = RuleFault::UnknownTarget { id: id.to_owned() };
        assert_eq!((error.fault, error.at.unwrap().line), (fault, 4));
    }
}

#[test]
fn an_allowlist_looks_at_secret_match_line_and_path() {
    let rule = "[[rules]]\nid = 'a'\nregex = '''key=([a-z0-9]{8})'''\n";
    let text = "left key=q8zr2lmt right\nkey=w7yx3knv\n";
    // The same in a rule as for all.
    let finds = |list: &str| {
        let [in_rule, global] = ["rules.allowlists", "allowlists"].map(|table| {
            let config = format!("{rule}[[{table}]]\n{list}\n");
            found(load(&[("c.toml", &config)]).unwrap(), "src/a.go", text)
        });
        assert_eq!(in_rule, global, "{list}");
        global.len()
    };
    for (list, passes) in [
        ("regexes = ['^q8zr']", true),
        ("regexTarget = 'secret'\nregexes = ['2lmt$']", true),
        ("regexes = ['key=q8']", false),
        ("regexTarget = 'match'\nregexes = ['^key=q8zr2lmt$']", true),
        ("regexTarget = 'match'\nregexes = ['left']", false),
        ("regexTarget = 'line'\nregexes = ['^left .* right$']", true),
        ("stopwords = ['Q8ZR']", true),
        ("stopwords = ['left']", false),
        ("regexes = ['nope', 'q8']", true),
        ("condition = 'OR'\nregexes = ['nope']\nstopwords = ['q8']", true),
        ("condition = '&&'\nregexes = ['nope']\nstopwords = ['q8']", false),
        ("condition = '&&'\nregexes = ['q8']\nstopwords = ['2lm']", true),
        ("condition = 'and'\nregexes = ['q8']\nstopwords = ['2lm']\npaths = ['go$']", true),
        ("condition = 'and'\nregexes = ['q8']\nstopwords = ['2lm']\npaths = ['py$']", false),
        // No commit is ever met.
        ("condition = 'and'\nregexes = ['q8']\ncommits = ['abc']", false),
        ("regexes = ['q8']\ncommits = ['abc']", true),
    ] {
        assert_eq!(finds(list), if passes { 1 } else { 2 }, "{list}");
    }
    assert_eq!(finds("paths = ['^src/']"), 0);
    assert_eq!(finds("paths = ['^a']"), 2);
}

#[test]
fn an_allowlist_looks_at_what_was_decoded() {
    let text = format!("blob: {}\n", base64(b"note key=q8zr2lmt5 aside, and the end", STANDARD));
    let rule = "[[rules]]\nid = 'a'\nregex = '''key=([a-z0-9]{9})'''\n[[rules.allowlists]]\n";
    for (list, count) in [
        ("regexes = ['nope']", 1),
        ("regexes = ['^q8zr']", 0),
        ("regexTarget = 'match'\nregexes = ['key=']", 0),
        ("regexTarget = 'line'\nregexes = ['aside']", 0),
    ] {
        let rules = load(&[("c.toml", &format!("{rule}{list}\n"))]).unwrap();
        assert_eq!(found(rules, "a", &text).len(), count, "{list} in {text}");
    }
}

#[test]
fn allowlists_of_an_extended_file_hold_beside_those_on_top() {
    let base = format!("{BASE}[[allowlists]]\nregexes = ['^q8zr']\n");
    let top = format!("{EXTENDS}[[allowlists]]\ntargetRules = ['other']\nstopwords = ['knv']\n");
    let files = [("c.toml", top.as_str()), ("base.toml", base.as_str())];
    assert_eq!(found(load(&files).unwrap(), "a", TEXT), []);
    assert_eq!(found(load(&files[1..]).unwrap(), "a", TEXT).len(), 1);
}

#[test]
fn entropy_is_that_of_the_group_which_is_the_secret() {
    let finds = |group: &str| {
        let rule = "[[rules]]\nid = 'a'\nentropy = 2.9\nregex = '''(aa+)-([a-z0-9]{8})'''\n";
        let rules = load(&[("c.toml", &format!("{rule}{group}\n"))]).unwrap();
        found(rules, "a", "aaaaaaaa-q8zr2lmt")
    };
    assert_eq!(finds("secretGroup = 2"), [("a".to_owned(), "q8zr2lmt".to_owned())]);
    // Without a number it is the first group, which has one letter. 0 is no number.
    assert_eq!(finds("secretGroup = 0"), []);
}

#[test]
fn what_gitleaks_leaves_out_where_files_extend_holds_here() {
    // A rule that adjusts another may require one, and that may be in the file below.
    let rules = over_base("[[rules]]\nid = 'acme'\n[[rules.required]]\nid = 'other'\n");
    assert_eq!(found(rules.clone(), "a", TEXT).len(), 2);
    assert_eq!(found(rules, "a", "k = acme_q8zr2lmt"), []);
    // A list for some rules may be there too.
    let base = format!("{BASE}[[allowlists]]\ntargetRules = ['acme']\npaths = ['^a$']\n");
    let rules = load(&[("c.toml", EXTENDS), ("base.toml", &base)]).unwrap();
    assert_eq!(found(rules, "a", TEXT), [("other".to_owned(), "other_w7yx3knv".to_owned())]);
}

/// gitleaks' own expressions take what follows a value, often the end of the line.
#[test]
fn the_line_behind_a_match_is_none_of_its_lines() {
    let finds = |regex: &str, text: &str| {
        let rule = format!("[[rules]]\nid = 'a'\nregex = '''{regex}'''\n");
        let found = found(load(&[("c.toml", &rule)]).unwrap(), "a", text);
        found.into_iter().map(|(_, secret)| secret).collect::<Vec<_>>()
    };
    let grouped = r"key=([a-z0-9]{8})(?:[\s;]|$)";
    assert_eq!(finds(grouped, "key=q8zr2lmt\nnext # gitleaks:allow\n"), ["q8zr2lmt"]);
    assert_eq!(finds(grouped, "key=q8zr2lmt # gitleaks:allow\n"), [] as [&str; 0]);
    // Neither is the end of the line part of the secret.
    let whole = r"\skey_[a-z0-9]{8}(?:[^a-z]|\z)";
    assert_eq!(finds(whole, "\nkey_q8zr2lmt\n# gitleaks:allow\n"), ["key_q8zr2lmt"]);
}

#[test]
fn what_gitleaks_refuses_is_refused_with_its_place() {
    for (text, line, part) in [
        ("[extend]\nuseDefault = true\npath = 'b.toml'\n", 3, "not both"),
        ("[extend]\npath = 'gone.toml'\n", 2, "gone.toml: no such file"),
        ("[[rules]]\nid = 'a'\n", 1, "needs `regex`"),
        ("[[rules]]\nid = 'github-pat'\nentropy = 2.0\n", 1, "needs `regex`"),
        ("[[rules]]\nregex = 'abc'\n", 1, "non-empty `id`"),
        ("[[rules]]\nid = 'a'\nregex = 'a(b)c'\nsecretGroup = 3\n", 4, "has 1 groups"),
        ("[[rules]]\nid = 'a'\nregex = 'abc'\n[[rules.required]]\nid = 'b'\n", 1, "requires"),
        ("[[rules]]\nid = 'a'\nregex = 'abc'\n[[rules.required]]\n", 4, "needs the `id`"),
        (
            "[[rules]]\nid = 'a'\nregex = 'abc'\n[[rules.allowlists]]\nregexTarget = 'mtach'\n\
          regexes = ['a']\n",
            5,
            "mtach",
        ),
        ("[[allowlists]]\ncondition = 'XOR'\npaths = ['a']\n", 2, "XOR"),
        ("[[allowlists]]\npaths = ['(']\n", 2, "unclosed group"),
        (
            "[extend]\nuseDefault = true\n[allowList]\npaths = [\n'a',\n'*.js',\n]\n",
            6,
            "repetition",
        ),
        ("[[allowlists]]\n", 1, "an allow-list needs"),
        ("[[rules]]\nid = 'a'\nregex = 'abc'\n[[rules.allowlists]]\n", 4, "an allow-list needs"),
        ("[[allowlists]]\nregexTarget = 'mtach'\nregexes = ['a']\n", 2, "mtach"),
        (
            "[extend]\npath = 'c.toml'\n[[rules]]\nid = 'new'\nkeywords = ['a']\n",
            3,
            "needs `regex`",
        ),
    ] {
        let error = refused(text);
        assert_eq!(error.at.map(|at| at.line), Some(line), "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn empty_tables_and_expressions_of_go_are_read() {
    assert!(load(&[("c.toml", "title = 'x'\n[[rules]]\n")]).unwrap().is_empty());
    let text = r#"
        [[rules]]
        id = "template"
        regex = '''secret=\${([A-Z]+)}|{{([a-z]+)}}'''
        placeholders = "keep"
        [allowlist]
        regexes = ['''^\${NAME}$''', '''{{''']
    "#;
    let rules = load(&[("c.toml", text)]).unwrap();
    let secrets: Vec<_> = found(rules, "a", "secret=${TOKENAB} {{other}}");
    assert_eq!(secrets.len(), 2, "{secrets:?}");
}
