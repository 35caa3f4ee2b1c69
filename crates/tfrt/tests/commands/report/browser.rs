//! The page in a browser: it draws itself, answers to mouse and keyboard, and does so soon.

use std::fmt::Write;

use super::*;

/// Chromium's names.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Uses the page, and says in its element what it found wrong.
const EXERCISE: &str = include_str!("exercise.js");

/// The time in which a page must be there.
const MAX_READY_MS: f64 = 2_000.0;

fn browser() -> Option<&'static str> {
    let found = BROWSERS.into_iter().find(|browser| {
        let version = Command::new(browser).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        println!("SKIPPED: pages in a browser: chromium is not installed");
    }
    found
}

/// Opens a page in a window of some width, and returns it as it is then, and what its console says.
fn open(browser: &str, page: &Path, width: u32) -> (String, String) {
    let name = page.file_stem().unwrap().to_string_lossy();
    let profile = file(&format!("browser-{name}-{width}"));
    // A browser that can't do its work may wait for ever.
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", "180", browser])
        .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
        .args(["--disable-dev-shm-usage", "--no-first-run"])
        .args(["--enable-logging=stderr", "--timeout=60000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={width},800"))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let console = said.lines().filter(|line| line.contains(":CONSOLE"));
    let console = console.collect::<Vec<_>>().join("\n");
    // A browser that found no time to end may still be writing there: what is left is no harm.
    let _ = fs::remove_dir_all(profile);
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        console,
    )
}

/// Returns the note that the page has left under a name in its outermost element.
fn noted<'d>(dom: &'d str, name: &str) -> &'d str {
    let begin = format!("data-{name}=\"");
    let (_, behind) = dom
        .split_once(&begin)
        .unwrap_or_else(|| panic!("{name} in {dom}"));
    behind.split_once('"').unwrap().0
}

/// Opens a page and uses it: everything it has can be seen, nothing in it fails.
pub fn exercise(page: &Path, width: u32) {
    let Some(browser) = browser() else { return };
    let html = fs::read_to_string(page).unwrap();
    let script = format!("<script>{EXERCISE}</script>\n</body>");
    let used = page.with_extension("used.html");
    fs::write(&used, html.replace("</body>", &script)).unwrap();
    let (dom, console) = open(browser, &used, width);
    assert_eq!(console, "");
    assert_eq!(noted(&dom, "failures"), "0");
    assert_eq!(noted(&dom, "wrong"), "", "at a width of {width}");
}

#[test]
fn page_is_drawn_and_can_be_used() {
    let profiled = profile("used", PROGRAM, &["--queue=multi:2"]);
    for width in [1280, 800] {
        exercise(&profiled.page, width);
    }
}

#[test]
fn ten_thousand_kernels_open_soon() {
    let mut text = "func.func @main() -> i32 {\n  %v0 = tfrt.constant.i32 1\n".to_owned();
    let name = |kernel: u32| ["add", "minus", "mul"][kernel as usize % 3];
    for kernel in 1..10_000_u32 {
        let (a, b) = (kernel - 1, kernel * 7 / 8);
        let name = name(kernel);
        writeln!(
            text,
            "  %v{kernel} = \"tfrt.{name}.i32\"(%v{a}, %v{b}) : (i32, i32) -> i32"
        )
        .unwrap();
    }
    text.push_str("  tfrt.return %v9999 : i32\n}\n");
    let profiled = profile("large", &text, &["--queue=multi:2"]);
    assert_eq!(profiled.column("kernels", "runs"), vec![1; 10_000]);
    exercise(&profiled.page, 1280);
    let Some(browser) = browser() else { return };
    // Whatever else this machine does: the best of a few.
    let ready_ms = (0..3).map(|_| {
        let (dom, _) = open(browser, &profiled.page, 1280);
        noted(&dom, "ready").parse::<f64>().unwrap()
    });
    let mut seen = Vec::new();
    let is_soon = ready_ms
        .inspect(|ms| seen.push(*ms))
        .any(|ms| ms < MAX_READY_MS);
    assert!(is_soon, "{seen:?} ms");
}
