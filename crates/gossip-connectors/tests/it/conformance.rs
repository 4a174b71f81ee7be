//! The suite of the contract, on a directory.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::thread::sleep;
use std::time::Duration;

use gossip_connectors::fs::FsSource;
use gossip_contracts::connector::conformance::{Harness, Item, sample_paths};

use crate::support::Disk;

pub(crate) struct Directory {
    disk: Disk,
    outside: Disk,
}

impl Harness for Directory {
    type Connector = FsSource;

    fn build(items: &[Item]) -> Self {
        let disk = Disk::new();
        for item in items {
            disk.write(&item.key, &item.content);
        }
        Self { disk, outside: Disk::new() }
    }

    fn connect(&self) -> FsSource {
        self.disk.source()
    }

    fn put(&mut self, key: &[u8], content: &[u8]) {
        let changed = || {
            let metadata = fs::metadata(self.disk.at(key)).ok()?;
            Some((metadata.ctime(), metadata.ctime_nsec()))
        };
        let before = changed();
        loop {
            self.disk.write(key, content);
            if changed() != before {
                return;
            }
            // The file system's clock has not ticked yet.
            sleep(Duration::from_millis(2));
        }
    }

    fn remove(&mut self, key: &[u8]) {
        fs::remove_file(self.disk.at(key)).unwrap();
    }

    fn deny(&mut self, key: &[u8]) -> bool {
        if rustix::process::geteuid().is_root() {
            println!("no mode keeps root out; a test of its own does this as nobody");
            return false;
        }
        fs::set_permissions(self.disk.at(key), fs::Permissions::from_mode(0o000)).unwrap();
        true
    }

    fn entice(&mut self, secret: &[u8]) -> Vec<Vec<u8>> {
        self.outside.write("secret", secret);
        let secret = self.outside.at("secret");
        symlink(&secret, self.disk.at("trap-file")).unwrap();
        symlink(self.outside.path(), self.disk.at("trap-dir")).unwrap();
        fs::create_dir(self.disk.at("trap")).unwrap();
        symlink("../trap-dir/secret", self.disk.at("trap/deep")).unwrap();
        let outside = self.outside.path().file_name().unwrap().as_encoded_bytes();
        vec![
            b"trap-file".to_vec(),
            b"trap-dir/secret".to_vec(),
            b"trap/deep".to_vec(),
            b"trap/../trap-file".to_vec(),
            [b"../", outside, b"/secret"].concat(),
            secret.into_os_string().into_encoded_bytes(),
        ]
    }

    fn keys() -> Vec<Vec<u8>> {
        let mut keys = sample_paths();
        keys.extend([
            b"\xff".to_vec(),
            b"a/b\xfe\x80/\xc3".to_vec(),
            b"a\n/ ".to_vec(),
            vec![b'n'; 255],
            [vec![b'n'; 254], b"/x".to_vec()].concat(),
        ]);
        keys
    }
}

gossip_contracts::connector_conformance_suite!(Directory);
