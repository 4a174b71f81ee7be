//! What whole archives hold.

use std::io::{Cursor, Write};

use gossip_archive::{Format, Limits, NotRead};

use crate::support::{Files, ar_of, bz2, gz, see, see_some, seven_zip_of, tar_of, xz, zip_of, zst};

const FILES: Files<'static> =
    &[("a.env", b"KEY=1\n"), ("dir/b.txt", b"some text"), ("dir/a name of some length.c", b"")];

fn owned(files: Files<'_>) -> Vec<(String, Vec<u8>)> {
    files.iter().map(|(name, content)| ((*name).to_owned(), content.to_vec())).collect()
}

#[test]
fn every_format_gives_its_files_in_order() {
    for (name, bytes) in [
        ("x.zip", zip_of(FILES)),
        ("x.tar", tar_of(FILES)),
        ("x.ar", ar_of(FILES)),
        ("x.7z", seven_zip_of(FILES)),
        ("x.tar.gz", gz(&tar_of(FILES))),
        ("x.tgz", gz(&tar_of(FILES))),
        ("x.tar.bz2", bz2(&tar_of(FILES))),
        ("x.tar.xz", xz(&tar_of(FILES))),
        ("x.tar.zst", zst(&tar_of(FILES))),
        ("x.zip.gz", gz(&zip_of(FILES))),
    ] {
        let seen = see(name, &bytes);
        assert_eq!(seen.files, owned(FILES), "{name}");
        assert_eq!(seen.not_read, [], "{name}");
    }
}

#[test]
fn a_compressed_file_is_called_what_it_was_before() {
    for (name, bytes) in [
        ("logs/app.log.gz", gz(b"a line\n")),
        ("app.log.bz2", bz2(b"a line\n")),
        ("app.log.xz", xz(b"a line\n")),
        ("app.log.zst", zst(b"a line\n")),
        ("app.log.gz", gz(&gz(b"a line\n"))),
    ] {
        let seen = see(name, &bytes);
        let expected = if name == "app.log.gz" { "content" } else { "app.log" };
        assert_eq!(seen.files, [(expected.to_owned(), b"a line\n".to_vec())], "{name}");
    }
}

#[test]
fn streams_after_each_other_are_read_to_the_last() {
    let parts = |pack: fn(&[u8]) -> Vec<u8>| [pack(b"one "), pack(b"two")].concat();
    for (name, bytes) in
        [("a.gz", parts(gz)), ("a.bz2", parts(bz2)), ("a.xz", parts(xz)), ("a.zst", parts(zst))]
    {
        assert_eq!(see(name, &bytes).files, [("a".to_owned(), b"one two".to_vec())], "{name}");
    }
}

#[test]
fn archives_in_archives_are_named_on_the_way() {
    let war = zip_of(&[("WEB-INF/lib/a.jar", &zip_of(&[("b/c.env", b"K=1")])), ("x", b"y")]);
    let deb = ar_of(&[
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", &gz(&tar_of(&[("control", b"Package: x\n")]))),
        ("data.tar.xz", &xz(&tar_of(&[("etc/key", b"K=2"), ("app.war", &war)]))),
    ]);
    let tar = tar_of(&[("pool/x.deb", &deb), ("last", b"z")]);
    let seen = see("all.tar", &tar);
    assert_eq!(
        seen.names(),
        [
            "pool/x.deb!debian-binary",
            "pool/x.deb!control.tar.gz!control",
            "pool/x.deb!data.tar.xz!etc/key",
            "pool/x.deb!data.tar.xz!app.war!WEB-INF/lib/a.jar!b/c.env",
            "pool/x.deb!data.tar.xz!app.war!x",
            "last",
        ]
    );
    assert_eq!(seen.not_read, []);
}

/// Whoever goes on counts files.
#[test]
fn which_files_there_are_does_not_depend_on_what_is_read_of_them() {
    let inner = zip_of(FILES);
    let members = [("1", b"one" as &[u8]), ("2.zip", &inner), ("3", b"three"), ("4.gz", &gz(b"4"))];
    for bytes in [zip_of(&members), tar_of(&members), gz(&tar_of(&members)), seven_zip_of(&members)]
    {
        let all = see("x", &bytes);
        for mask in 0..64_usize {
            let seen = see_some(&Limits::default(), "x", &bytes, |number| mask >> number & 1 == 1);
            assert_eq!(seen.names(), all.names(), "{mask:b}");
            assert_eq!(seen.not_read, all.not_read);
            for (number, (file, whole)) in seen.files.iter().zip(&all.files).enumerate() {
                assert!(mask >> number & 1 == 0 || file == whole, "{mask:b}");
            }
        }
    }
}

/// A file that is damaged, and one that reaches a limit, are as much so if they are passed over.
#[test]
fn what_is_reported_does_not_depend_on_what_is_read() {
    let text = b"some text that is not so short".repeat(2000);
    let mut cut = gz(&text);
    let end = cut.len() - 6;
    cut[end] ^= 1;
    let members = [("1", &text[..]), ("2.gz", &cut), ("3", &text), ("4", b"four")];
    let mut broken_zip = zip_of(&members);
    let third = broken_zip.windows(2).rposition(|window| window == b"4P").unwrap();
    broken_zip[third - 90] ^= 0x55;
    let limits = Limits { ratio_from: 130_000, ratio: 1, ..Limits::default() };
    for bytes in
        [cut.clone(), broken_zip, zip_of(&members), gz(&tar_of(&members)), seven_zip_of(&members)]
    {
        for limits in [Limits::default(), limits] {
            let all = see_some(&limits, "x.gz", &bytes, |_| true);
            assert_ne!(all.not_read, []);
            for mask in 0..15_usize {
                let seen = see_some(&limits, "x.gz", &bytes, |number| mask >> number & 1 == 1);
                assert_eq!(seen.names(), all.names(), "{mask:b}");
                assert_eq!(seen.not_read, all.not_read, "{mask:b}");
            }
        }
    }
}

#[test]
fn names_that_lead_out_are_names_and_links_are_not_followed() {
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &[u8], kind: tar::EntryType, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        tar.append(&header, content).unwrap();
    };
    add(b"../../etc/cron.d/x", tar::EntryType::Regular, b"one");
    add(b"/etc/shadow", tar::EntryType::Regular, b"two");
    add(b"soft", tar::EntryType::Symlink, b"");
    add(b"hard", tar::EntryType::Link, b"");
    add(b"pipe", tar::EntryType::Fifo, b"");
    add(b"dir/", tar::EntryType::Directory, b"");
    add(b"./last", tar::EntryType::Regular, b"three");
    let seen = see("x.tar", &tar.into_inner().unwrap());
    assert_eq!(seen.names(), ["../../etc/cron.d/x", "/etc/shadow", "last"]);
    let not_read = [("soft", NotRead::Link), ("hard", NotRead::Link), ("pipe", NotRead::Special)];
    assert_eq!(seen.not_read, not_read.map(|(name, why)| (name.to_owned(), why)));
}

#[test]
fn long_names_of_every_kind_are_read() {
    let long = format!("{}/end", "d".repeat(300));
    let by_gnu = tar_of(&[(&long, b"gnu")]);
    let mut by_pax = tar::Builder::new(Vec::new());
    by_pax.append_pax_extensions([("path", long.as_bytes()), ("size", b"3")]).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_path("short").unwrap();
    header.set_size(3);
    header.set_cksum();
    by_pax.append(&header, &b"pax"[..]).unwrap();
    let by_pax = by_pax.into_inner().unwrap();
    let prefix = format!("{}/{}", "p".repeat(120), "n".repeat(90));
    let mut by_prefix = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_path(&prefix).unwrap();
    header.set_size(1);
    header.set_cksum();
    by_prefix.append(&header, &b"u"[..]).unwrap();
    let by_prefix = by_prefix.into_inner().unwrap();
    // BSD's ar has the name before the bytes.
    let mut by_bsd = b"!<arch>\n".to_vec();
    let name = "a name of some length";
    let len = name.len() + 3;
    by_bsd.extend_from_slice(
        format!(
            "{:<16}{:<12}{:<6}{:<6}{:<8}{len:<10}`\n",
            format!("#1/{}", name.len()),
            0,
            0,
            0,
            0
        )
        .as_bytes(),
    );
    by_bsd.extend_from_slice(format!("{name}bsd").as_bytes());
    for (bytes, name, content) in [
        (by_gnu, long.as_str(), &b"gnu"[..]),
        (by_pax, &long, b"pax"),
        (by_prefix, &prefix, b"u"),
        (by_bsd, name, b"bsd"),
    ] {
        assert_eq!(see("x", &bytes).files, [(name.to_owned(), content.to_vec())]);
    }
}

#[test]
fn what_is_encrypted_is_said_and_the_rest_is_read() {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let plain = zip::write::SimpleFileOptions::default();
    let secret = plain.with_aes_encryption(zip::AesMode::Aes256, "a password of a test");
    for (name, options) in [("one", plain), ("two", secret), ("three", plain)] {
        zip.start_file(name, options).unwrap();
        zip.write_all(b"content").unwrap();
    }
    let seen = see("x.zip", &zip.finish().unwrap().into_inner());
    assert_eq!(seen.names(), ["one", "three"]);
    assert_eq!(seen.not_read, [("two".to_owned(), NotRead::Encrypted)]);

    let mut archive = sevenz_rust2::ArchiveWriter::new(Cursor::new(Vec::new())).unwrap();
    let password = sevenz_rust2::Password::from("a password of a test");
    let aes = sevenz_rust2::encoder_options::AesEncoderOptions::new(password);
    let methods = vec![aes.into(), sevenz_rust2::EncoderMethod::LZMA2.into()];
    archive.set_content_methods(methods);
    let entry = sevenz_rust2::ArchiveEntry::new_file("one");
    archive.push_archive_entry(entry, Some(&b"content"[..])).unwrap();
    let seen = see("x.7z", &archive.finish().unwrap().into_inner());
    // The tests' own features can decrypt: without a password it is the same to a reader.
    assert_eq!(seen.files.iter().filter(|(_, content)| content == b"content").count(), 0);
    assert_eq!(seen.not_read.len(), 1, "{seen:?}");
}

/// An unpacker keeps one of them; which one, each decides otherwise.
#[test]
fn entries_of_one_name_are_all_read() {
    let files: Files<'_> = &[("a.env", b"K=1"), ("b.env", b"K=2"), ("a.env", b"K=3")];
    let mut zip = zip_of(&[("a.env", b"K=1"), ("b.env", b"K=2"), ("c.env", b"K=3")]);
    // The writer refuses to.
    for at in 0..zip.len() - 5 {
        if &zip[at..at + 5] == b"c.env" {
            zip[at] = b'a';
        }
    }
    for (name, bytes) in [("zip", zip), ("tar", tar_of(files)), ("7z", seven_zip_of(files))] {
        let seen = see(name, &bytes);
        assert_eq!((seen.files, seen.not_read), (owned(files), vec![]), "{name}");
    }
}

/// What is called a directory, comes after the end, or is beside what cannot be read.
#[test]
fn content_in_unusual_places_is_read() {
    let mut zip = zip_of(&[("a.env_", b"K=1"), ("b", b"K=2")]);
    for at in 0..zip.len() - 6 {
        if &zip[at..at + 6] == b"a.env_" {
            zip[at + 5] = b'/';
        }
    }
    assert_eq!(see("x.zip", &zip).files, owned(&[("a.env/", b"K=1"), ("b", b"K=2")]));

    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_size(3);
    tar.append_data(&mut header, "a.env/", &b"K=1"[..]).unwrap();
    let first = tar.into_inner().unwrap();
    let both = [first, tar_of(&[("b", b"K=2")]), vec![0; 700]].concat();
    let seen = see("x.tar", &both);
    assert_eq!(seen.files, owned(&[("a.env/", b"K=1"), ("b", b"K=2")]));
    assert_eq!(seen.not_read, []);
    let seen = see("x.tar", &[both, b"what is no header".repeat(40)].concat());
    assert_eq!(seen.files.len(), 2);
    assert_eq!(seen.not_read, [(String::new(), NotRead::Damaged)]);

    let mut archive = sevenz_rust2::ArchiveWriter::new(Cursor::new(Vec::new())).unwrap();
    let password = sevenz_rust2::Password::from("a password of a test");
    let aes = sevenz_rust2::encoder_options::AesEncoderOptions::new(password);
    for (name, method) in [
        ("one", sevenz_rust2::EncoderMethod::COPY.into()),
        ("two", aes.into()),
        ("three", sevenz_rust2::EncoderMethod::LZMA2.into()),
    ] {
        archive.set_content_methods(vec![method]);
        let entry = sevenz_rust2::ArchiveEntry::new_file(name);
        archive.push_archive_entry(entry, Some(&b"content"[..])).unwrap();
    }
    let seen = see("x.7z", &archive.finish().unwrap().into_inner());
    let read = seen.files.iter().filter(|(_, content)| content == b"content").count();
    assert_eq!((read, seen.not_read.len()), (2, 1), "{seen:?}");
}

#[test]
fn office_files_and_packages_are_zip() {
    let bytes = zip_of(&[("[Content_Types].xml", b"<x/>"), ("word/document.xml", b"<y/>")]);
    assert_eq!(Format::detect(&bytes), Some(Format::Zip));
    assert_eq!(Format::detect(&zip_of(&[])), Some(Format::Zip));
    assert_eq!(see("a.docx", &bytes).names(), ["[Content_Types].xml", "word/document.xml"]);
}
