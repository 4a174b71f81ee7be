"""A git history made of the published versions of crates, one commit a version, on standard output
as `git fast-import` reads it. Arguments: a directory for downloads, the number of versions of each
crate.

Crates are those that cargo knows on this machine: its copy of the registry's index has their versions
and the address to download them from."""
import glob, io, json, os, re, sys, tarfile, urllib.request
from concurrent.futures import ThreadPoolExecutor

CRATES = """syn serde serde_derive tokio hyper regex regex-syntax regex-automata clap clap_builder libc
rustls ring h2 http reqwest axum tonic prost tracing tracing-subscriber futures-util rayon rand itertools
time uuid url rusqlite rustls-webpki gix gix-pack gix-odb gix-config object_store async-nats proptest
criterion blake3 zip tar flate2 zstd-sys libsqlite3-sys indexmap hashbrown chrono toml toml_edit
serde_json winnow quick-xml rustix jiff parking_lot bytes mio socket2 tower hyper-util windows-sys
aho-corasick memchr""".split()


def index():
    home = os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")
    for config in glob.glob(os.path.join(home, "registry/index/*/config.json")):
        return os.path.dirname(config), json.load(open(config))["dl"]
    sys.exit("cargo has no index of a registry yet: run `cargo fetch`")


def versions(place, name):
    parts = [str(len(name))] if len(name) < 3 else ["3", name[0]] if len(name) == 3 else [name[:2], name[2:4]]
    path = os.path.join(place, ".cache", *parts, name)
    if not os.path.exists(path):
        return []
    return [found.decode() for found in re.findall(rb'"vers": ?"([^"]+)"', open(path, "rb").read())]


def download(address, cache, name, version):
    path = os.path.join(cache, f"{name}-{version}.crate")
    if not os.path.exists(path):
        data = urllib.request.urlopen(f"{address}/{name}/{version}/download", timeout=60).read()
        with open(path + ".part", "wb") as out:
            out.write(data)
        os.rename(path + ".part", path)
    return path


def main():
    cache, count = sys.argv[1], int(sys.argv[2])
    os.makedirs(cache, exist_ok=True)
    place, address = index()
    known = {name: versions(place, name)[-count:] for name in CRATES}
    if not any(known.values()):
        sys.exit("cargo's index has none of the crates: run `cargo fetch` in this workspace")
    order = [(name, known[name][at]) for at in range(count) for name in CRATES if at < len(known[name])]
    out = sys.stdout.buffer
    with ThreadPoolExecutor(16) as pool:
        paths = pool.map(lambda pair: download(address, cache, *pair), order)
        for number, ((name, version), path) in enumerate(zip(order, paths)):
            message = f"{name} {version}\n".encode()
            out.write(b"commit refs/heads/main\n")
            out.write(b"committer Bench <bench@example.com> %d +0000\n" % (1_600_000_000 + 60 * number))
            out.write(b"data %d\n%sD %s\n" % (len(message), message, name.encode()))
            with tarfile.open(path) as archive:
                for member in archive:
                    inner = member.name.split("/", 1)[-1]
                    if not member.isfile() or '"' in inner or "\n" in inner:
                        continue
                    data = archive.extractfile(member).read()
                    out.write(b"M 100644 inline %s/%s\n" % (name.encode(), inner.encode()))
                    out.write(b"data %d\n%s\n" % (len(data), data))


main()
