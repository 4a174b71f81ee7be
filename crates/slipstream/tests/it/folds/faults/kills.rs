//! Folds that are killed while somebody writes. Those of the program are in the tests of `slipstream-cli`.

use slipstream::FjallSnapshot;

use crate::killed::reads_only_what_it_lacks;

/// On an engine. The next fold is in this process.
#[tokio::test(flavor = "multi_thread")]
async fn a_fold_on_fjall_that_is_killed_reads_only_what_it_lacks() {
    let name = concat!(module_path!(), "::a_fold_on_fjall_that_is_killed_reads_only_what_it_lacks");
    reads_only_what_it_lacks::<FjallSnapshot>(name).await;
}
