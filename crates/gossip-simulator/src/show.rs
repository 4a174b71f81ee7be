//! Operations and answers for readers of a trace: keys are the simulator's own, so they may show.

use core::fmt::Write as _;

use gossip_contracts::identity::{ShardId, ShardKey, TenantId};
use gossip_coordination::Lease;

use super::op::{Answer, Effect, Operation, OwnedCursor, OwnedRange};

pub(super) fn tenant(tenant: TenantId) -> char {
    char::from(b'A' + (tenant.as_bytes()[0].wrapping_sub(1)) % 26)
}

fn shard(id: ShardId) -> String {
    if id.is_derived() { format!("~{:05x}", id.as_raw() & 0xf_ffff) } else { format!("{id}") }
}

fn place(of: TenantId, key: ShardKey) -> String {
    format!("{}/{}/{}", tenant(of), key.run, shard(key.shard))
}

fn held(asks: TenantId, lease: &Lease) -> String {
    let whose =
        if asks == lease.tenant() { String::new() } else { format!("{} asks: ", tenant(asks)) };
    let (owner, fence) = (lease.owner().as_raw(), lease.fence());
    format!("{whose}w{owner} {} fence {fence}", place(lease.tenant(), lease.key()))
}

fn point(key: &[u8]) -> String {
    match *key {
        [_, high, low] => format!("{}", u16::from_be_bytes([high, low])),
        [_, high, low, tail, ..] if key.len() == 4 => {
            format!("{}+{tail}", u16::from_be_bytes([high, low]))
        }
        _ => format!("[{} bytes]", key.len()),
    }
}

fn range(range: &OwnedRange) -> String {
    format!("{}..{}", point(&range.start), point(&range.end))
}

fn cursor(cursor: &OwnedCursor) -> String {
    let at = cursor.last_key.as_deref().map_or("nothing".to_owned(), point);
    match &cursor.token {
        Some(token) => format!("{at} (token of {})", token.len()),
        None => at,
    }
}

pub(super) fn operation(operation: &Operation) -> String {
    let mut shown = match operation {
        Operation::CreateRun { tenant: of, run, config } => {
            let (lease, tries) = (config.lease_duration, config.max_shard_retries);
            format!("create run {}/{run}, leases of {lease} ms, {tries} tries", tenant(*of))
        }
        Operation::RegisterShards { tenant: of, run, shards, .. } => {
            let rows: Vec<_> = shards
                .iter()
                .map(|row| {
                    format!("{}:{} at {}", shard(row.shard), range(&row.range), cursor(&row.cursor))
                })
                .collect();
            format!("register {}/{run} {}", tenant(*of), rows.join(" "))
        }
        Operation::GetRun { tenant: of, run } => format!("get run {}/{run}", tenant(*of)),
        Operation::GetRunProgress { tenant: of, run } => format!("progress {}/{run}", tenant(*of)),
        Operation::ListShards { tenant: of, run, filter } => {
            format!("list {}/{run} {filter:?}", tenant(*of))
        }
        Operation::CompleteRun { tenant: of, run, .. } => {
            format!("complete run {}/{run}", tenant(*of))
        }
        Operation::FailRun { tenant: of, run, .. } => format!("fail run {}/{run}", tenant(*of)),
        Operation::CancelRun { tenant: of, run, .. } => format!("cancel run {}/{run}", tenant(*of)),
        Operation::DeleteRun { tenant: of, run } => format!("delete run {}/{run}", tenant(*of)),
        Operation::RevokeLease { tenant: of, key, fence } => {
            format!("revoke {} at fence {fence}", place(*of, *key))
        }
        Operation::NoteIdle { tenant: of, run, worker } => {
            format!("w{} is idle in {}/{run}", worker.as_raw(), tenant(*of))
        }
        Operation::Unpark { tenant: of, key, .. } => format!("unpark {}", place(*of, *key)),
        Operation::Acquire { tenant: of, key, worker } => {
            format!("w{} acquire {}", worker.as_raw(), place(*of, *key))
        }
        Operation::Renew { tenant: of, lease } => format!("{} renew", held(*of, lease)),
        Operation::Release { tenant: of, lease } => format!("{} release", held(*of, lease)),
        Operation::Checkpoint { tenant: of, lease, cursor: at, renews, .. } => {
            let what = if *renews { "checkpoint and renew" } else { "checkpoint" };
            format!("{} {what} at {}", held(*of, lease), cursor(at))
        }
        Operation::Complete { tenant: of, lease, cursor: at, .. } => {
            format!("{} complete at {}", held(*of, lease), cursor(at))
        }
        Operation::Park { tenant: of, lease, reason, .. } => {
            format!("{} park {reason:?}", held(*of, lease))
        }
        Operation::SplitReplace { tenant: of, lease, children, .. } => {
            let parts: Vec<_> = children.iter().map(range).collect();
            format!("{} replace by {}", held(*of, lease), parts.join(" "))
        }
        Operation::SplitResidual { tenant: of, lease, kept, residual, .. } => {
            format!("{} keep {} give {}", held(*of, lease), range(kept), range(residual))
        }
    };
    if let Some(op_id) = operation.op_id() {
        write!(shown, " op {op_id}").expect("text can be written into a string");
    }
    shown
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Nothing => String::new(),
        Effect::Children(ids) => {
            ids.iter().map(|&id| format!(" {}", shard(id))).collect::<String>()
        }
        Effect::Residual(id) => format!(" {}", shard(*id)),
        Effect::Renewed { deadline, idle: Some(idle) } => {
            format!(" until {deadline}, {idle} idle")
        }
        Effect::Renewed { deadline, idle: None } => format!(" until {deadline}, no hint"),
    }
}

pub(super) fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Accepted => "accepted".to_owned(),
        Answer::Executed(what) => format!("executed{}", effect(what)),
        Answer::Replayed(what) => format!("replayed{}", effect(what)),
        Answer::Acquired(acquired) => format!(
            "acquired {} fence {} until {}, {} at {}",
            place(acquired.lease.tenant(), acquired.lease.key()),
            acquired.lease.fence(),
            acquired.lease.deadline(),
            range(&acquired.range),
            cursor(&acquired.cursor)
        ),
        Answer::Renewed { deadline } => format!("until {deadline}"),
        Answer::Run(run) => format!("{:?}", run.status),
        Answer::Progress(progress) => format!("{progress:?}"),
        Answer::Shards(shards) => format!("{} shards", shards.len()),
        Answer::Refused(refusal) => format!("refused: {refusal:?}"),
    }
}
