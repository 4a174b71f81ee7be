//! The page of findings in a real browser: Debian's Chromium, by its driver.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Place, token};

/// A browser, which ends with this.
struct Browser {
    driver: Child,
    address: String,
    session: String,
}

impl Browser {
    /// `None` for those who have none and say that they know, with `GOSSIP_ALLOW_SKIPS`.
    fn start() -> Option<Self> {
        let mut driver = Command::new("chromedriver");
        driver.args(["--port=0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut driver) = driver.spawn() else {
            let skip = std::env::var("GOSSIP_ALLOW_SKIPS").is_ok_and(|allow| allow == "1");
            assert!(skip, "needs Debian's chromium and chromium-driver, or GOSSIP_ALLOW_SKIPS=1");
            eprintln!("skipped: there is no chromedriver");
            return None;
        };
        let mut said = String::new();
        let out = driver.stdout.as_mut().unwrap();
        let port = loop {
            let mut byte = [0];
            out.read_exact(&mut byte).expect("the driver says its port");
            said.push(char::from(byte[0]));
            if let Some((_, rest)) = said.split_once("successfully on port ")
                && let Some((port, _)) = rest.split_once('.')
            {
                break port.trim().to_owned();
            }
        };
        let address = format!("127.0.0.1:{port}");
        let mut browser = Self { driver, address, session: String::new() };
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1100,800"];
        let options = json!({ "args": arguments });
        let logging = json!({ "performance": "ALL", "browser": "ALL" });
        let wanted = json!({ "alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": logging,
            "unhandledPromptBehavior": "ignore",
        }});
        let session = browser.send("POST", "", &json!({ "capabilities": wanted }));
        browser.session = format!("/{}", session["sessionId"].as_str().unwrap());
        Some(browser)
    }

    /// A command of WebDriver, and its answer.
    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(
            stream,
            "{method} /session{}{path} HTTP/1.1\r\nHost: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.session,
            self.address,
            body.len()
        )
        .unwrap();
        // The driver keeps the connection, so the answer ends where its head says.
        let mut answer = BufReader::new(stream);
        let (mut head, mut len) = (String::new(), 0);
        loop {
            let mut line = String::new();
            answer.read_line(&mut line).expect("the driver answers");
            if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                len = number.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; len];
        answer.read_exact(&mut body).expect("the driver answers");
        let body = String::from_utf8_lossy(&body);
        assert!(head.starts_with("HTTP/1.1 200"), "{method} {path}: {head}{body}");
        serde_json::from_str::<Value>(&body).unwrap()["value"].take()
    }

    fn run(&self, script: &str) -> Value {
        self.send("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.send("DELETE", "", &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

const ROWS: &str = "return [...document.querySelectorAll('tr.finding')].map(r => r.innerText);";

#[test]
fn the_page_filters_and_sorts_asks_nobody_and_runs_nothing_of_what_was_found() {
    let place = Place::with_a_token();
    place.write("<img src=x onerror=hacked=1>.env", format!("T={}\n", token(2)));
    place.write(
        "z.txt",
        format!("</script><script>hacked=1</script><!-- & mine_abcdwxyz '{}'\n", token(3)),
    );
    let rules = place.path("mine.toml");
    fs::write(
        &rules,
        "[[rules]]\nid = 'mine'\nregex = 'mine_[a-z]{8}'\nseverity = 'low'\n\
         description = '<b onclick=hacked=1>mine</b>'\n",
    )
    .unwrap();
    let page = place.path("page.html");
    let words = format!("scan TREE --rules {} -o {}", rules.display(), page.display());
    place.run(&words).exits(1).says("4 findings");

    let Some(browser) = Browser::start() else { return };
    browser.send("POST", "/url", &json!({ "url": format!("file://{}", page.display()) }));
    let rows = || -> Vec<String> {
        let rows = browser.run(ROWS);
        rows.as_array().unwrap().iter().map(|row| row.as_str().unwrap().to_owned()).collect()
    };
    let all = rows();
    assert_eq!(all.len(), 4, "the script of the page runs: {all:?}");
    assert!(all[0].starts_with("critical") && all[3].starts_with("low"), "{all:?}");
    assert!(all.iter().any(|row| row.contains("<img src=x onerror=hacked=1>.env:1:3")), "{all:?}");

    // Filters.
    let search = |text: &str| {
        browser.run(&format!(
            "const s = document.getElementById('search'); s.value = {}; \
             s.dispatchEvent(new Event('input'));",
            json!(text)
        ));
    };
    search("APP.ENV");
    assert_eq!(rows().len(), 1);
    assert_eq!(
        browser.run("return document.getElementById('summary').innerText;"),
        "1 of 4 findings"
    );
    search("");
    browser.run("document.getElementById('critical').click();");
    assert_eq!(rows().len(), 1);
    browser.run("document.getElementById('critical').click();");
    browser.run(
        "const s = document.getElementById('rule'); s.value = 'mine'; \
         s.dispatchEvent(new Event('change'));",
    );
    assert_eq!(rows().len(), 1);
    browser.run(
        "const s = document.getElementById('rule'); s.value = ''; \
         s.dispatchEvent(new Event('change'));",
    );
    // Order.
    browser.run("document.getElementById('sort-path').click();");
    assert!(rows()[0].contains("<img"), "{:?}", rows());
    browser.run("document.getElementById('sort-path').click();");
    assert!(rows()[0].contains("z.txt"), "{:?}", rows());
    // Details.
    browser.run("document.querySelectorAll('tr.finding').forEach(r => r.click());");
    let details = browser.run("return document.querySelector('table').innerText;");
    assert!(details.as_str().unwrap().contains("Revoke it at"), "{details}");
    assert!(details.as_str().unwrap().contains("<b onclick=hacked=1>mine</b>"), "{details}");

    // Nothing of it is markup, and nothing was asked for but the page.
    assert_eq!(browser.run("return window.hacked ?? null;"), Value::Null);
    assert_eq!(browser.run("return document.querySelectorAll('img, b').length;"), 0);
    assert_eq!(browser.run("return document.scripts.length;"), 3);
    let log = browser.send("POST", "/se/log", &json!({ "type": "performance" }));
    let requests: Vec<String> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| serde_json::from_str::<Value>(entry["message"].as_str().unwrap()).unwrap())
        .filter(|entry| entry["message"]["method"] == "Network.requestWillBeSent")
        .map(|entry| entry["message"]["params"]["request"]["url"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        requests.iter().all(|url| url == &format!("file://{}", page.display())),
        "{requests:?}"
    );
    let log = browser.send("POST", "/se/log", &json!({ "type": "browser" }));
    assert_eq!(log, json!([]), "nothing was refused or failed");
    if let Some(file) = std::env::var_os("GOSSIP_SCREENSHOT") {
        let picture = browser.send("GET", "/screenshot", &Value::Null);
        fs::write(file, picture.as_str().unwrap()).unwrap();
    }
}
