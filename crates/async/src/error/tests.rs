use crate::{ClusterTask, Error, ErrorCode, SourceLocation};

#[test]
fn codes_have_the_numbers_and_names_of_the_original() {
    let names = [
        "OK",
        "Cancelled",
        "Unknown",
        "InvalidArgument",
        "DeadlineExceeded",
        "NotFound",
        "AlreadyExists",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "Aborted",
        "OutOfRange",
        "Unimplemented",
        "Internal",
        "Unavailable",
        "DataLoss",
        "Unauthenticated",
    ];
    for (number, (code, name)) in ErrorCode::ALL.into_iter().zip(names).enumerate() {
        assert_eq!((code as usize, code.name()), (number, name));
        assert_eq!(code.to_string(), name);
    }
    assert_eq!(ErrorCode::DistributedContextAlreadyExists as u8, 27);
}

#[test]
fn only_the_first_location_and_kernel_are_kept() {
    let at = |line| SourceLocation::FileLineCol {
        file: "a.mlir".to_owned(),
        line,
        column: 2,
    };
    let error = Error::unknown("x")
        .with_location(at(1))
        .with_location(at(9));
    let error = error
        .with_kernel("first")
        .with_kernel("second")
        .with_note("a")
        .with_note("b");
    assert_eq!(error.location().unwrap().to_string(), "a.mlir:1:2");
    assert_eq!(error.kernel(), Some("first"));
    assert_eq!(error.notes(), ["a", "b"]);
}

#[test]
fn additions_do_not_change_other_holders_errors() {
    let error = Error::unknown("x");
    let copy = error.clone();
    assert!(copy.same(&error));
    let noted = error.with_note("more");
    assert!(!noted.same(&copy) && copy.notes().is_empty());
}

#[test]
fn error_is_never_ok() {
    assert_eq!(Error::new(ErrorCode::Ok, "x").code(), ErrorCode::Unknown);
}

#[test]
fn display_is_the_message_and_debug_says_all() {
    let error = Error::invalid_argument("Divide by zero").with_kernel("tfrt.div.i32");
    assert_eq!(error.to_string(), "Divide by zero");
    assert_eq!(
        format!("{error:?}"),
        "Error { code: InvalidArgument, message: \"Divide by zero\", kernel: \"tfrt.div.i32\" }"
    );
}

#[test]
fn only_the_first_task_is_kept_and_it_is_printed() {
    let task = |task| ClusterTask {
        job: "worker".to_owned(),
        task,
    };
    let error = Error::unavailable("gone").with_task(task(1));
    let copy = error.clone().with_task(task(2)).with_note("a note");
    assert_eq!(copy.task(), Some(&task(1)));
    assert_eq!(copy.message(), "gone");
    assert_eq!(copy.to_string(), "/job:worker/task:1: gone");
    assert!(format!("{error:?}").contains("task: /job:worker/task:1"));
    assert_eq!(Error::unavailable("gone").task(), None);
}
