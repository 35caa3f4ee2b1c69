use super::*;

#[test]
fn events_follow_each_other_on_a_thread() {
    let recorder = Recorder::new();
    let first = recorder.functions(7);
    assert_eq!(recorder.functions(1), first.offset(7));
    assert_eq!(first.offset(7).index_from(first), Some(7));
    assert_eq!(first.offset(u32::MAX).index_from(first), None);
    let track = recorder.track();
    track.kernel(first.offset(2), 5, 1);
    recorder.track().kernel(first.offset(3), u32::MAX, 2);
    recorder.part(first.offset(4), 6);
    let recording = recorder.recording();
    let [thread] = recording.threads.as_slice() else {
        panic!("one thread took part");
    };
    let [one, two, three] = thread.events.as_slice() else {
        panic!("it recorded three events");
    };
    assert_eq!(one.end_ns, two.begin_ns);
    assert!(two.end_ns <= recording.end_ns);
    let kind = EventKind::Kernel {
        function: first.offset(3),
        kernel: u32::MAX,
        call: 2,
    };
    assert_eq!(two.kind, kind);
    let (function, kernel) = (first.offset(4), 6);
    assert_eq!(three.kind, EventKind::Part { function, kernel });
}

#[test]
fn tasks_and_sleep_are_told_beside_kernels() {
    let recorder = Recorder::new();
    let track = recorder.worker_track();
    let begin = track.last();
    track.kernel(recorder.functions(1), 0, 0);
    track.task(begin);
    track.steal(5);
    track.park();
    let recording = recorder.recording();
    let thread = &recording.threads[0];
    assert!(thread.is_worker);
    let kinds = thread.events.iter().map(|event| event.kind);
    let others = [EventKind::Task, EventKind::Steal(5), EventKind::Park];
    assert!(kinds.skip(1).eq(others));
    let [kernel, task, steal, park] = thread.events.as_slice() else {
        panic!("it recorded four events");
    };
    assert_eq!(task.begin_ns, kernel.begin_ns);
    assert!(task.end_ns <= steal.begin_ns);
    assert_eq!(
        (steal.end_ns, park.end_ns <= recording.end_ns),
        (park.begin_ns, true)
    );
}

#[test]
fn oldest_events_give_way() {
    let recorder = Recorder::with_capacity(4);
    let track = recorder.track();
    let first = recorder.functions(1);
    (0..11).for_each(|kernel| track.kernel(first, kernel, 0));
    let recording = recorder.recording();
    let events = &recording.threads[0].events;
    assert_eq!(recording.threads[0].n_lost + events.len() as u64, 11);
    let last = events.last().expect("the newest are kept");
    assert!(matches!(last.kind, EventKind::Kernel { kernel: 10, .. }));
}

#[test]
fn threads_have_tracks_of_their_own() {
    let recorder = Recorder::new();
    let first = recorder.functions(1);
    recorder.track().kernel(first, 0, 0);
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().name("other".to_owned());
        let body = || recorder.track().kernel(first, 1, 0);
        other.spawn_scoped(scope, body).expect("a thread starts");
    });
    let recording = recorder.recording();
    assert_eq!(recording.threads.len(), 2);
    assert_eq!(recording.threads[1].name, "other");
    assert_eq!(recording.threads[1].events.len(), 1);
}

#[test]
fn threads_that_ended_are_forgotten_in_the_end() {
    let recorder = Recorder::with_capacity(2);
    let first = recorder.functions(1);
    for number in 0..MAX_LEFT + 5 {
        std::thread::scope(|scope| {
            let other = std::thread::Builder::new().name(format!("other {number}"));
            let body = || recorder.kernel(first, 0, 0);
            let other = other.spawn_scoped(scope, body).expect("a thread starts");
            other.join().expect("it does not panic");
        });
    }
    let recording = recorder.recording();
    assert!((MAX_LEFT..=MAX_LEFT + 1).contains(&recording.threads.len()));
    let n_kept = recording.threads.len() as u64;
    assert_eq!(n_kept + recording.n_lost, MAX_LEFT as u64 + 5);
    let last = recording.threads.last().expect("the last are kept");
    assert_eq!(last.name, format!("other {}", MAX_LEFT + 4));
}

#[test]
fn recorders_do_not_mix() {
    let (one, two) = (Recorder::new(), Recorder::new());
    for recorder in [&one, &two, &one] {
        recorder.track().kernel(recorder.functions(1), 0, 0);
    }
    let n_events = |recorder: &Recorder| {
        let threads = recorder.recording().threads;
        threads
            .iter()
            .map(|thread| thread.events.len())
            .sum::<usize>()
    };
    assert_eq!((n_events(&one), n_events(&two)), (2, 1));
}

#[test]
fn times_are_those_of_the_clock() {
    let recorder = Recorder::with_capacity(1);
    let track = recorder.track();
    track.mark();
    let clock = std::time::Instant::now();
    while clock.elapsed().as_millis() < 20 {}
    track.kernel(recorder.functions(1), 0, 0);
    let event = recorder.recording().threads[0].events[0];
    let took_ms = (event.end_ns - event.begin_ns) / 1_000_000;
    assert!((19..2_000).contains(&took_ms), "{took_ms} ms");
    let clock = std::time::Instant::now();
    while clock.elapsed().as_millis() < 2 {}
    let now = recorder.now_ns();
    assert!(now >= event.end_ns + 1_900_000);
    recorder.mark();
    recorder.kernel(recorder.functions(1), 1, 0);
    let next = recorder.recording().threads[0].events[0];
    assert!(now <= next.begin_ns && next.end_ns <= recorder.now_ns());
}

#[test]
fn threads_of_one_name_have_tracks_of_their_own_while_they_live() {
    let recorder = Recorder::new();
    let first = recorder.functions(1);
    // Neither ends before both have recorded.
    let both = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for kernel in [1, 2] {
            let (recorder, both) = (&recorder, &both);
            let body = move || {
                recorder.kernel(first, kernel, 0);
                both.wait();
            };
            let namesake = std::thread::Builder::new().name("namesake".to_owned());
            namesake.spawn_scoped(scope, body).expect("a thread starts");
        }
    });
    let n_events = |track: &ThreadRecording| track.events.len();
    let threads = recorder.recording().threads;
    assert!(threads.iter().map(n_events).eq([1, 1]), "{threads:?}");
}

#[test]
fn a_thread_comes_back_to_its_track_and_a_worker_begins_another() {
    let (one, two) = (Recorder::new(), Recorder::new());
    for recorder in [&one, &two, &one] {
        recorder.kernel(recorder.functions(1), 0, 0);
    }
    let n_events = |track: &ThreadRecording| track.events.len();
    assert!(one.recording().threads.iter().map(n_events).eq([2]));
    assert!(two.recording().threads.iter().map(n_events).eq([1]));

    drop(one.worker_track());
    let is_worker = |track: &ThreadRecording| track.is_worker;
    assert!(
        one.recording()
            .threads
            .iter()
            .map(is_worker)
            .eq([false, true])
    );
}

#[test]
fn functions_without_a_number_are_told_as_one() {
    let recorder = Recorder::new();
    let first = recorder.functions(u32::MAX);
    let beyond = [first.offset(MAX_FUNCTION), recorder.functions(3)];
    assert_eq!(beyond[0], beyond[1]);
    for function in beyond {
        assert_eq!(function.index_from(first), None);
        recorder.kernel(function, 9, 0);
    }
    let last = first.offset(MAX_FUNCTION - 1);
    assert_eq!(last.index_from(first), Some(MAX_FUNCTION - 1));
    recorder.kernel(last, 9, 0);
    let events = &recorder.recording().threads[0].events;
    let functions = events.iter().map(|event| match event.kind {
        EventKind::Kernel {
            function,
            kernel: 9,
            ..
        } => Some(function),
        _ => None,
    });
    assert!(functions.eq([beyond[0], beyond[0], last].map(Some)));
}
