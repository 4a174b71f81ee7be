//! The macro of `gossip_coordination::planted` for this crate: what the product does, unless the
//! build has bugs planted on purpose.

#[cfg(not(planted))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
    ($bug:ident => $wrong:block) => {};
    ($right:expr, $($bug:ident => $wrong:expr),+ $(,)?) => {
        $right
    };
}

#[cfg(planted)]
macro_rules! planted {
    ($bug:ident) => {
        gossip_coordination::planted::is_selected(gossip_coordination::planted::Bug::$bug)
    };
    ($bug:ident => $wrong:block) => {
        if planted!($bug) $wrong
    };
    ($right:expr, $($bug:ident => $wrong:expr),+ $(,)?) => {
        $(if planted!($bug) { $wrong } else)+ { $right }
    };
}
