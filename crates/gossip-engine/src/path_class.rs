//! Which paths the engine tells apart.

use crate::detect::{Folders, Told};
use crate::engine::Engine;

impl Engine {
    /// The class of a path: of two paths in one class, the same bytes have the same findings.
    ///
    /// One bit for each condition that a rule or an allow-list sets to paths, and what the path says
    /// of how values are written in the file, and whether it is a note. Classes of different engines say nothing of each other.
    #[must_use]
    pub fn path_class(&self, path: &[u8]) -> Vec<u8> {
        let of_rules = self.rules.iter().flat_map(|rule| {
            let own = rule.path.as_ref().map(|pattern| pattern.is_match(path));
            own.into_iter()
                .chain(rule.allowlists.iter().filter_map(|list| list.path_condition(path)))
        });
        let of_all = self.rules.allowlists().filter_map(|list| list.path_condition(path));
        let Told { kind, is_note } = Told::by(Some(path), &mut Folders::default());
        let bits: Vec<bool> = of_rules.chain(of_all).chain([is_note]).collect();
        let pack = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        let mut class = vec![kind as u8];
        class.extend(bits.chunks(8).map(pack));
        class
    }
}

#[cfg(test)]
mod tests {
    use crate::{Engine, Options, RuleSet};

    #[test]
    fn paths_are_of_one_class_if_no_rule_tells_them_apart() {
        let rules = r#"
            [allowlist]
            paths = ['''^test/''']
            [[rules]]
            id = "everywhere"
            regex = '''abc[0-9]+'''
            [[rules.allowlists]]
            paths = ['''^vendor/''', '''^third_party/''']
            [[rules]]
            id = "somewhere"
            regex = '''xyz[0-9]+'''
            path = '''\.special$'''
        "#;
        let rules = RuleSet::from_toml("rules.toml", rules).unwrap();
        let engine = Engine::new(rules, Options::default());
        let class = |path: &str| engine.path_class(path.as_bytes());
        for (one, other) in [("a.c", "b/c.c"), ("vendor/a", "third_party/a"), ("test/a", "test/b")]
        {
            assert_eq!(class(one), class(other), "{one} and {other}");
        }
        let apart = ["a", "a.c", "a.md", "test/a", "vendor/a", "a.special", "test/a.special"];
        for (at, one) in apart.iter().enumerate() {
            for other in &apart[at + 1..] {
                assert_ne!(class(one), class(other), "{one} and {other}");
            }
        }
    }
}
