//! Which file systems a database must not live on: those where locks and shared memory do not work,
//! or not between all machines that see the file.

use std::path::Path;

/// The type of a network file system, if `dir` is on one.
pub(crate) fn network_kind(dir: &Path) -> Option<String> {
    magic(dir).and_then(|magic| classify(magic, || fuse_type(dir)))
}

/// What `statfs` says, by the numbers of Linux.
const NETWORK: &[(u32, &str)] = &[
    (0x0000_6969, "nfs"),
    (0x0000_517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x0102_1997, "9p"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "kafs"),
    (0x7375_7245, "coda"),
    (0x0000_564c, "ncp"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
    (0x1980_0528, "beegfs"),
    (0x4750_4653, "gpfs"),
    (0x0116_1970, "gfs2"),
    (0x7461_636f, "ocfs2"),
];

const FUSE: u32 = 0x6573_5546;

/// FUSE serves local disks too, so these are told by their type.
const FUSE_NETWORK: &[&str] = &[
    "sshfs",
    "s3fs",
    "gcsfuse",
    "rclone",
    "glusterfs",
    "davfs",
    "davfs2",
    "curlftpfs",
    "goofys",
    "smbnetfs",
    "mount-s3",
    "juicefs",
    "blobfuse2",
    "cephfs",
    "gdfs",
    "google-drive-ocamlfuse",
];

fn classify(magic: u32, fuse_type: impl FnOnce() -> Option<String>) -> Option<String> {
    if magic == FUSE {
        let kind = fuse_type()?;
        return FUSE_NETWORK.contains(&kind.as_str()).then(|| format!("fuse.{kind}"));
    }
    NETWORK.iter().find(|(known, _)| *known == magic).map(|(_, name)| (*name).to_owned())
}

#[cfg(target_os = "linux")]
fn magic(dir: &Path) -> Option<u32> {
    // The field's type differs between architectures; the numbers are 32 bits on all.
    rustix::fs::statfs(dir).ok().map(|found| found.f_type as u32)
}

/// Elsewhere nothing is known, and nothing refused.
#[cfg(not(target_os = "linux"))]
fn magic(_dir: &Path) -> Option<u32> {
    None
}

/// The sub-type of the FUSE mount that holds `dir`, such as `sshfs`.
fn fuse_type(dir: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(dir).ok()?.dev();
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    fuse_type_of(&device, &std::fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// The line of a device: `id parent major:minor root point options… - type source options`.
fn fuse_type_of(device: &str, mounts: &str) -> Option<String> {
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    let (_, of_file_system) = line.split_once(" - ")?;
    of_file_system.split(' ').next()?.strip_prefix("fuse.").map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
87 24 0:52 / /mnt/far rw,nosuid shared:9 - fuse.sshfs me@far:/ rw,user_id=0
88 24 0:53 / /mnt/disk rw,nosuid - fuse.ntfs-3g /dev/sdb1 rw
";

    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        let none = || None;
        assert_eq!(classify(0x6969, none).as_deref(), Some("nfs"));
        assert_eq!(classify(0xff53_4d42, none).as_deref(), Some("cifs"));
        for local in [0xef53, 0x0102_1994, 0x5846_5342, 0x9123_683e, 0x794c_7630] {
            assert_eq!(classify(local, none), None, "{local:#x}");
        }
    }

    #[test]
    fn fuse_mounts_are_told_by_their_type() {
        let far = || fuse_type_of("0:52", MOUNTS);
        let disk = || fuse_type_of("0:53", MOUNTS);
        assert_eq!(classify(FUSE, far).as_deref(), Some("fuse.sshfs"));
        assert_eq!(classify(FUSE, disk), None);
        assert_eq!(fuse_type_of("0:99", MOUNTS), None);
        assert_eq!(fuse_type_of("254:0", MOUNTS), None);
    }

    #[test]
    fn the_directory_for_temporary_files_is_local() {
        assert_eq!(network_kind(&std::env::temp_dir()), None);
    }
}
