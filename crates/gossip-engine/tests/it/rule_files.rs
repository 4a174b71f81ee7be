//! Rule files: what is accepted, what is refused, and in which words.

use gossip_engine::limits::MAX_REGEX_BYTES;
use gossip_engine::{Location, Origin, RuleFault, RuleFileError, RuleNote, RuleSet, Severity};

use crate::support::{engine, scan};

fn refused(text: &str) -> RuleFileError {
    RuleSet::from_toml("mine.toml", text).unwrap_err()
}

fn at(line: usize, column: usize) -> Option<Location> {
    Some(Location { line, column })
}

fn rule(id: &str) -> Option<String> {
    Some(id.to_owned())
}

fn error(at: Option<Location>, rule: Option<String>, fault: RuleFault) -> RuleFileError {
    RuleFileError { file: "mine.toml".to_owned(), at, rule, fault }
}

#[test]
fn bad_toml_says_where() {
    let found = refused("[[rules]]\nid = \"a\nregex = 'x'\n");
    assert_eq!(found.at.unwrap().line, 2);
    assert!(matches!(found.fault, RuleFault::Toml { .. }), "{found:?}");
    assert!(found.to_string().starts_with("mine.toml:2:"), "{found}");
}

#[test]
fn a_value_of_the_wrong_kind_says_where() {
    let found = refused("[[rules]]\nid = \"a\"\nregex = 'xyz'\nentropy = \"high\"\n");
    assert_eq!((found.at, found.rule.as_deref()), (at(4, 11), Some("a")));
    assert!(matches!(found.fault, RuleFault::Toml { .. }), "{found:?}");
}

#[test]
fn an_unknown_field_is_refused_by_name() {
    let found = refused("[[rules]]\nid = \"a\"\nregexp = 'xyz'\n");
    let fault = RuleFault::UnknownField { field: "regexp".to_owned() };
    assert_eq!(found, error(at(3, 1), rule("a"), fault));
    assert_eq!(found.to_string(), "mine.toml:3:1: rule `a`: unknown field `regexp`");
}

#[test]
fn an_unknown_field_outside_of_rules_is_refused() {
    let fault = RuleFault::UnknownField { field: "rule".to_owned() };
    assert_eq!(refused("[[rule]]\nid = \"a\"\n"), error(at(1, 3), None, fault));
}

#[test]
fn a_bad_regex_names_its_rule() {
    let found = refused("[[rules]]\nid = \"a\"\nregex = 'x('\n");
    let RuleFault::BadRegex { field: "regex", message } = &found.fault else { panic!("{found:?}") };
    assert_eq!((found.at, found.rule.as_deref()), (at(3, 9), Some("a")));
    assert_eq!(message, "unclosed group");
}

#[test]
fn the_name_of_an_assignment_may_not_capture() {
    let text = "[[rules]]\nid = 'a'\nassign = { name = '(foo)', value = '[a-z]{9}' }\n";
    let found = refused(text);
    assert_eq!((found.at, found.rule.as_deref()), (at(3, 10), Some("a")));
    assert!(matches!(found.fault, RuleFault::BadRegex { field: "assign", .. }), "{found:?}");
}

#[test]
fn a_bad_regex_of_an_allowlist_names_its_rule() {
    let text = "[[rules]]\nid = \"a\"\nregex = 'xyz'\n[[rules.allowlists]]\npaths = ['[']\n";
    let found = refused(text);
    assert_eq!((found.at, found.rule.as_deref()), (at(5, 10), Some("a")));
    assert!(matches!(found.fault, RuleFault::BadRegex { field: "allowlists.paths", .. }));
}

#[test]
fn a_regex_that_is_too_large_names_its_rule() {
    let found = refused("[[rules]]\nid = \"big\"\nregex = '(?:[a-z]{500}x){500}'\n");
    let fault = RuleFault::RegexTooLarge { field: "regex", limit: MAX_REGEX_BYTES };
    assert_eq!(found, error(at(3, 9), rule("big"), fault));
}

#[test]
fn ids_are_needed_and_of_two_rules_with_the_same_the_last_counts() {
    let found = refused("[[rules]]\nregex = 'xyz'\n");
    assert_eq!(found, error(at(1, 1), None, RuleFault::EmptyId));
    let found = refused("[[rules]]\nid = ' '\nregex = 'xyz'\n");
    assert_eq!(found, error(at(1, 1), None, RuleFault::EmptyId));
    let twice = "[[rules]]\nid = 'a'\nregex = 'xyz'\n[[rules]]\nid = 'a'\nregex = 'uvw'\n";
    let rules = RuleSet::from_toml("mine.toml", twice).unwrap();
    let note = RuleNote::IdTwice {
        file: "mine.toml".to_owned(),
        at: Location { line: 4, column: 1 },
        id: "a".to_owned(),
    };
    assert_eq!((rules.len(), rules.notes()), (1, &[note][..]));
    assert_eq!(scan(&engine(twice), b"xyz uvw").len(), 1);
}

#[test]
fn a_secret_group_must_exist() {
    let found = refused("[[rules]]\nid = 'a'\nregex = 'x(y)z'\nsecretGroup = 2\n");
    let fault = RuleFault::SecretGroupOutOfRange { group: 2, groups: 1 };
    assert_eq!(found, error(at(4, 15), rule("a"), fault));
}

#[test]
fn a_rule_must_match_something_and_not_nothing() {
    let found = refused("[[rules]]\nid = 'a'\n");
    assert_eq!(found, error(at(1, 1), rule("a"), RuleFault::NothingToMatch));
    let found = refused("[[rules]]\nid = 'a'\nregex = '[a-z]*'\n");
    assert_eq!(found, error(at(3, 9), rule("a"), RuleFault::MatchesEmpty));
    let both = "[[rules]]\nid = 'a'\nregex = 'xyz'\nassign = { name = 'n', value = 'v' }\n";
    assert_eq!(refused(both), error(at(1, 1), rule("a"), RuleFault::TwoExpressions));
    let found = refused("[[rules]]\nid = 'a'\nregex = 'xyz'\nentropy = -1\n");
    assert_eq!(found, error(at(1, 1), rule("a"), RuleFault::EntropyOutOfRange));
    let found = refused("[[rules]]\nid = 'a'\nregex = 'xyz'\n[[rules.allowlists]]\n");
    assert_eq!(found, error(at(4, 1), rule("a"), RuleFault::EmptyAllowlist));
}

#[test]
fn what_the_engine_cannot_do_is_refused() {
    let found = refused("[extend]\npath = 'other.toml'\n");
    assert!(matches!(found.fault, RuleFault::BaseNotRead { .. }), "{found}");
    let found = refused("[extend]\nurl = 'https://example.com/a.toml'\n");
    assert!(matches!(found.fault, RuleFault::Unsupported { field: "extend.url", .. }));
}

#[test]
fn disabling_a_rule_that_does_not_exist_is_noted() {
    let text = "[extend]\ndisabledRules = ['nope']\n";
    let rules = RuleSet::builtin().with_toml("mine.toml", text, Origin::User).unwrap();
    let notes: Vec<_> = rules.notes().iter().map(ToString::to_string).collect();
    assert_eq!(notes, ["mine.toml:2:18: there is no rule `nope` to disable"]);
}

#[test]
fn rules_of_a_user_replace_extend_and_disable() {
    let mine = RuleSet::from_toml(
        "mine.toml",
        r#"
        title = "ours"
        [extend]
        useDefault = true
        disabledRules = ["jwt"]
        [[rules]]
        id = "github-token"
        regex = 'ghp_[a-z]{4}'
        severity = "low"
        [[rules]]
        id = "acme"
        regex = 'acme_[a-z]{4}'
        "#,
    )
    .unwrap();
    assert_eq!(mine.len(), RuleSet::builtin().len());
    assert!(mine.get("jwt").is_none());
    assert!(mine.get("acme").is_some());
    assert_eq!(mine.get("github-token").unwrap().severity(), Severity::Low);
}

#[test]
fn the_fingerprint_changes_with_what_is_detected_only() {
    let print = |text: &str| {
        let text = format!("[[rules]]\nid = 'a'\n{text}");
        let rules = RuleSet::from_toml("mine.toml", &text).unwrap();
        let engine = gossip_engine::Engine::new(rules, gossip_engine::Options::default());
        (engine.rules().get("a").unwrap().fingerprint(), engine.policy_hash())
    };
    let base = print("regex = 'xyz'");
    assert_eq!(base, print("regex = 'xyz'\ndescription = 'd'\nexamples = ['xyz']"));
    let severe = print("regex = 'xyz'\nseverity = 'high'");
    assert_eq!(base.0, severe.0);
    assert_ne!(base.1, severe.1);
    for other in [
        "regex = 'xyzz'",
        "regex = 'xyz'\nentropy = 1",
        "regex = 'xyz'\nkeywords = ['k']",
        "regex = 'xyz'\npath = 'p'",
        "regex = 'xyz'\nstandalone = true",
        "regex = 'xyz'\ngeneric = true",
        "regex = 'xyz'\nplaceholders = 'keep'",
        "regex = 'xyz'\nchecksum = 'jwt'",
        "regex = 'x(y)z'\nsecretGroup = 1",
        "regex = 'xyz'\nsurprise = 1.0",
        "detect = 'named-password'",
        "detect = 'named-secret'",
        "regex = 'xyz'\n[[rules.allowlists]]\nstopwords = ['s']",
    ] {
        assert_ne!(base.0, print(other).0, "{other}");
        assert_ne!(base.1, print(other).1, "{other}");
    }
}

/// Persisted identities. If the policy hash changes although no rule did, either a limit changed,
/// or `ENGINE_VERSION` must.
#[test]
fn golden_values() {
    let text = "[[rules]]\nid = 'golden'\nregex = 'golden_([a-z]{8})'\nentropy = 2.5\n\
        keywords = ['golden']\n[[rules.allowlists]]\nstopwords = ['stop']\n";
    let engine = engine(text);
    let fingerprint = engine.rules().get("golden").unwrap().fingerprint().to_string();
    assert_eq!(fingerprint, "b2844c8d6181215bd25e6169994cf9d8280535484068b7f2bd13a4ba8f7d9b8f");
    assert_eq!(
        engine.policy_hash().to_string(),
        "7d68f01cbbe3a89d956c33343594be3605a16d7b5a038de02c03540cc43ab462"
    );
}

#[test]
fn a_gitleaks_rule_works_as_it_is() {
    let engine = engine(
        r#"
        title = "gitleaks config"
        [[rules]]
        id = "acme-key"
        description = "ACME"
        regex = '''(?i)[\w.-]{0,50}?(?:acme)(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}([a-z0-9]{16})(?:[\x60'"\s;]|\\[nr]|$)'''
        entropy = 2.5
        keywords = ["acme"]
        tags = ["key"]
        [[rules.allowlists]]
        condition = "AND"
        regexTarget = "line"
        regexes = ['''staging''']
        stopwords = ["q8zr"]
        [allowlist]
        description = "global"
        paths = ['''(^|/)vendor/''']
        "#,
    );
    let found = scan(&engine, b"x = 1\nmy.ACME_key := \"a7c9e1f3b5d7h2k4\";\n");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].start, found[0].end, found[0].line, found[0].column), (22, 38, 2, 17));
    let staging = b"staging acme = 'q8zr2lmt0vxbn5wk'\n";
    assert_eq!(scan(&engine, staging), []);
    assert_eq!(scan(&engine, b"acme = 'q8zr2lmt0vxbn5wk'\n").len(), 1);
    let mut count = 0;
    let mut scratch = gossip_engine::Scratch::new();
    let text = b"acme = 'a7c9e1f3b5d7h2k4'";
    engine.scan(&mut scratch, text, Some(b"x/vendor/y.c"), &mut |_| count += 1);
    assert_eq!(count, 0);
}

#[test]
fn keywords_that_the_expression_does_not_contain_must_be_near() {
    let near = "[[rules]]\nid = 'a'\nregex = '\\b[0-9]{7}\\b'\nkeywords = ['Widget']\n";
    let engine = engine(near);
    let found = scan(&engine, b"7654321 and then a wIDGET with 1234596, 12");
    let spans: Vec<_> = found.iter().map(|found| (found.start, found.end)).collect();
    assert_eq!(spans, [(0, 7), (31, 38)]);
    let far = format!("widget{}7654321", " ".repeat(5000));
    assert_eq!(scan(&engine, far.as_bytes()), []);
}

#[test]
fn a_very_long_keyword_must_be_there_in_full() {
    let keyword = "widget-".repeat(60);
    let rule =
        format!("[[rules]]\nid = 'a'\nregex = '\\b[0-9]{{7}}\\b'\nkeywords = ['{keyword}']\n");
    let engine = engine(&rule);
    assert_eq!(scan(&engine, format!("{keyword} 7654321").as_bytes()).len(), 1);
    assert_eq!(scan(&engine, format!("{} 7654321", &keyword[1..]).as_bytes()), []);
}

#[test]
fn a_rule_without_a_literal_is_tried_everywhere() {
    let engine = engine("[[rules]]\nid = 'a'\nregex = '\\b[0-9]{7}\\b'\n");
    assert!(!engine.rules().get("a").unwrap().has_literals());
    let text = format!("{} 7654321 {}", "x ".repeat(200_000), "y ".repeat(200_000));
    let found = scan(&engine, text.as_bytes());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].start, 400_001);
}

#[test]
fn a_rule_of_paths_only_finds_the_file() {
    let engine = engine("[[rules]]\nid = 'p12'\npath = '\\.p12$'\n");
    let mut found = Vec::new();
    let mut scratch = gossip_engine::Scratch::new();
    engine.scan(&mut scratch, b"any", Some(b"a/b.p12"), &mut |f| found.push(f.span()));
    engine.scan(&mut scratch, b"", Some(b"a/b.p12"), &mut |f| found.push(f.span()));
    engine.scan(&mut scratch, b"any", Some(b"a/b.txt"), &mut |f| found.push(f.span()));
    assert_eq!(found, [gossip_engine::Span { start: 0, len: 0 }; 2]);
}
