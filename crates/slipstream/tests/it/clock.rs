//! Waiting for the product's time limits, but not for as long.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

/// How often the clock is put forward, and by how much.
const EVERY: Duration = Duration::from_millis(100);
const BY: Duration = Duration::from_millis(900);

/// Has the runtime's clock run ten times as fast until something is done. The runtime is one of a single
/// thread; servers keep their own time.
pub(crate) async fn faster<T>(what: impl Future<Output = T>) -> T {
    let is_paused = Cell::new(false);
    let put_forward = async {
        loop {
            tokio::time::sleep(EVERY).await;
            tokio::time::pause();
            is_paused.set(true);
            tokio::time::advance(BY).await;
            tokio::time::resume();
            is_paused.set(false);
        }
    };
    let done = tokio::select! {
        done = what => done,
        () = put_forward => unreachable!("it goes on for ever"),
    };
    if is_paused.get() {
        tokio::time::resume();
    }
    done
}
