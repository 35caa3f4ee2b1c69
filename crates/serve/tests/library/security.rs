//! Tokens, and what each may ask for.

use std::time::Duration;

use tfrt_serve::{Limits, Server, VersionPolicy};

use crate::support::{Client, Folder, ROWS, Times, builder, post, repository};

const READER: &str = "reader-0123456789";
const CALLER: &str = "caller-0123456789";
const OWNER: &str = "owner-01234567890";

/// Starts a server that asks for the tokens of a file, which it looks at with each request.
fn guarded(folder: &Folder, tokens: &str) -> Server {
    folder.write("tokens", tokens);
    let repository = repository(Vec::new(), VersionPolicy::default());
    repository
        .add("double", std::sync::Arc::new(Times::new(2.0)))
        .unwrap();
    let limits = Limits {
        trust_time: Duration::ZERO,
        ..Limits::default()
    };
    let server = builder(repository)
        .limits(limits)
        .tokens(&folder.0.join("tokens"))
        .unwrap();
    server.listen("127.0.0.1:0").unwrap().start().unwrap()
}

/// Returns the status of a request with a token.
fn status(server: &Server, request: &str, token: &str) -> u16 {
    let (method, path) = request.split_once(' ').unwrap();
    let header = format!("authorization: Bearer {token}\r\n");
    let request = match method {
        "GET" => format!("GET {path} HTTP/1.1\r\nhost: x\r\n{header}\r\n").into_bytes(),
        _ => post(path, &header, ROWS),
    };
    Client::new(server).send(request).answer().status
}

#[test]
fn tokens_may_ask_for_what_their_scopes_say() {
    let folder = Folder::new("tokens");
    let server = guarded(
        &folder,
        &format!("{READER} metadata metrics\n{CALLER} infer\n{OWNER} repository\n"),
    );
    for (request, allowed) in [
        ("GET /v2", READER),
        ("GET /v2/models/double", READER),
        ("GET /v2/models/double/stats", READER),
        ("GET /v1/models/double", READER),
        ("POST /v2/repository/index", READER),
        ("GET /metrics", READER),
        ("POST /v2/models/double/infer", CALLER),
        ("POST /v1/models/double:predict", CALLER),
        ("POST /v2/repository/models/double/unload", OWNER),
    ] {
        for token in [READER, CALLER, OWNER] {
            let found = status(&server, request, token);
            assert_eq!(
                found == 403,
                token != allowed,
                "{request} by {token}: {found}"
            );
        }
        assert_eq!(
            status(&server, request, "nobody-0123456789"),
            401,
            "{request}"
        );
    }
}

#[test]
fn request_without_a_token_is_told_to_bring_one() {
    let folder = Folder::new("none");
    let server = guarded(&folder, &format!("{CALLER} infer\n"));
    let mut client = Client::new(&server);
    let answer = client.post("/v2/models/double/infer", ROWS);
    assert_eq!(answer.status, 401);
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    assert!(
        answer.error().starts_with("expected a token"),
        "{}",
        answer.error()
    );
    // Nobody is told which models and paths there are.
    assert_eq!(client.get("/v2/models/other").status, 401);
    // Probes have no tokens.
    for path in ["/v2/health/live", "/v2/health/ready"] {
        assert_eq!(client.get(path).status, 200, "{path}");
    }
}

#[test]
fn tokens_are_read_again_when_their_file_changes() {
    let folder = Folder::new("changes");
    let server = guarded(&folder, &format!("{CALLER} infer\n"));
    let infer = "POST /v2/models/double/infer";
    assert_eq!(status(&server, infer, CALLER), 200);
    folder.write("tokens", &format!("{OWNER} infer metrics\n"));
    assert_eq!(status(&server, infer, OWNER), 200);
    assert_eq!(status(&server, infer, CALLER), 401);
    // A file that is none changes nothing, but is counted.
    folder.write("tokens", "nonsense\n");
    let header = format!("authorization: Bearer {OWNER}\r\n");
    let metrics = format!("GET /metrics HTTP/1.1\r\nhost: x\r\n{header}\r\n");
    let answer = Client::new(&server).send(&metrics).answer();
    let counted = "tfrt_security_files_failed_total 1\n";
    assert!(answer.text().contains(counted), "{}", answer.text());
    assert_eq!(status(&server, infer, OWNER), 200);
}

#[test]
fn file_without_tokens_is_told_by_its_path() {
    let folder = Folder::new("useless-tokens");
    folder.write("tokens", "short infer\n");
    let path = folder.0.join("tokens");
    let repository = repository(Vec::new(), VersionPolicy::default());
    let error = builder(repository).tokens(&path).err().unwrap();
    let expected = format!(
        "tokens '{}': line 1: expected a token of 16 visible characters at least, found 5 bytes",
        path.display()
    );
    assert_eq!(error.message(), expected);
}
