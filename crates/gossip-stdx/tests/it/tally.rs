//! Elements that notice leaks and double drops, and can panic when cloned or dropped.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Counts the drops of each element it handed out.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    drops: Rc<RefCell<Vec<u32>>>,
    clones_left: Rc<Cell<Option<u32>>>,
}

/// An element; its identity is its place in the tally.
pub(crate) struct Counted {
    id: usize,
    panics_on_drop: bool,
    tally: Tally,
}

impl Tally {
    pub(crate) fn element(&self) -> Counted {
        self.add(false)
    }

    pub(crate) fn element_that_panics_on_drop(&self) -> Counted {
        self.add(true)
    }

    fn add(&self, panics_on_drop: bool) -> Counted {
        let mut drops = self.drops.borrow_mut();
        drops.push(0);
        Counted { id: drops.len() - 1, panics_on_drop, tally: self.clone() }
    }

    /// After `clones` more, cloning panics.
    pub(crate) fn allow_clones(&self, clones: u32) {
        self.clones_left.set(Some(clones));
    }

    pub(crate) fn dropped(&self) -> usize {
        self.drops.borrow().iter().filter(|&&drops| drops == 1).count()
    }

    /// Every element was dropped once.
    pub(crate) fn assert_settled(&self) {
        for (id, &drops) in self.drops.borrow().iter().enumerate() {
            assert_eq!(drops, 1, "element {id}");
        }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        if let Some(left) = self.tally.clones_left.get() {
            assert!(left > 0, "out of clones");
            self.tally.clones_left.set(Some(left - 1));
        }
        self.tally.element()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.tally.drops.borrow_mut()[self.id] += 1;
        assert!(!self.panics_on_drop, "asked to panic on drop");
    }
}

/// Runs `f`, which must panic.
pub(crate) fn panics(f: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err(), "nothing panicked");
}
