//! Which ready kernels run here, and which are handed to the work queue.
//!
//! The order is that of the original runtime, so that effects that no chain orders come out as
//! they did there under the single-threaded queue:
//!
//! * kernels of the queue's stream run on this thread, the last to become ready first;
//! * kernels of other streams wait until the next turn, and then go to the work queue as one task
//!   for each stream, in ascending order of streams;
//! * when nothing is left to run here, the queue moves to the stream of the first of those that
//!   wait, and takes all of that stream.

use smallvec::SmallVec;
use tfrt_bef::order::sort_by;

/// The ready kernels of one call on one thread: `R` is the right to start one.
#[derive(Debug)]
pub(crate) struct ReadyQueue<R> {
    stream: u32,
    here: SmallVec<[R; 4]>,
    elsewhere: Vec<(u32, R)>,
}

/// A group of ready kernels of one stream, for a task.
pub(crate) type Group<R> = (u32, Vec<R>);

impl<R> ReadyQueue<R> {
    pub(crate) fn new(stream: u32) -> Self {
        ReadyQueue {
            stream,
            here: SmallVec::new(),
            elsewhere: Vec::new(),
        }
    }

    /// A queue that starts with the kernels of a group.
    pub(crate) fn of_group((stream, here): Group<R>) -> Self {
        ReadyQueue {
            stream,
            here: SmallVec::from_vec(here),
            elsewhere: Vec::new(),
        }
    }

    pub(crate) fn stream(&self) -> u32 {
        self.stream
    }

    /// Adds a kernel of `stream` that became ready.
    #[inline]
    pub(crate) fn push(&mut self, stream: u32, ready: R) {
        if stream == self.stream {
            self.here.push(ready);
        } else {
            self.elsewhere.push((stream, ready));
        }
    }

    /// Adds a kernel that became ready, to be run here whatever its stream.
    #[inline]
    pub(crate) fn push_here(&mut self, ready: R) {
        self.here.push(ready);
    }

    /// Takes all kernels that are to run here; the last is the next.
    #[inline]
    pub(crate) fn take_here(&mut self) -> impl Iterator<Item = R> {
        self.here.drain(..)
    }

    /// Adds kernels that are to run here after all that are listed, the last of them first.
    pub(crate) fn put_below(&mut self, below: Vec<R>) {
        self.here.insert_many(0, below);
    }

    /// Takes the next kernel to run here.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<R> {
        self.here.pop()
    }

    /// Takes the next kernel to run here that is the one wanted.
    pub(crate) fn take(&mut self, is_wanted: impl Fn(&R) -> bool) -> Option<R> {
        let place = self.here.iter().rposition(is_wanted)?;
        Some(self.here.remove(place))
    }

    /// Tells whether kernels of other streams wait for the next turn.
    #[inline]
    pub(crate) fn has_others(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// Between two kernels: moves to another stream if there is nothing left here, and gives away
    /// what belongs elsewhere.
    #[inline]
    pub(crate) fn turn(&mut self) -> Vec<Group<R>> {
        if self.elsewhere.is_empty() {
            Vec::new()
        } else {
            self.turn_with_others()
        }
    }

    fn turn_with_others(&mut self) -> Vec<Group<R>> {
        if self.here.is_empty() {
            self.move_to(self.elsewhere[0].0);
        }
        // A stable sort: the original's is, too, for as many kernels as it meets.
        sort_by(&mut self.elsewhere, |a, b| a.0.cmp(&b.0));
        let mut groups: Vec<Group<R>> = Vec::new();
        for (stream, ready) in self.elsewhere.drain(..) {
            match groups.last_mut() {
                Some((last, group)) if *last == stream => group.push(ready),
                _ => groups.push((stream, vec![ready])),
            }
        }
        groups
    }

    /// Takes all kernels of `stream` from those that wait, in the order in which the original's
    /// partition by two pointers leaves them: the front ones that stay are skipped, the back ones
    /// that go are skipped, and the two that stop are swapped.
    fn move_to(&mut self, stream: u32) {
        self.stream = stream;
        let (mut front, mut back) = (0, self.elsewhere.len());
        loop {
            while front < back && self.elsewhere[front].0 != stream {
                front += 1;
            }
            while front < back && self.elsewhere[back - 1].0 == stream {
                back -= 1;
            }
            if front == back {
                break;
            }
            back -= 1;
            self.elsewhere.swap(front, back);
            front += 1;
        }
        self.here
            .extend(self.elsewhere.drain(front..).map(|(_, ready)| ready));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernels of these streams, named by letters.
    fn queue_at(stream: u32, ready: &[(u32, char)]) -> ReadyQueue<char> {
        let mut queue = ReadyQueue::new(stream);
        for (stream, kernel) in ready {
            queue.push(*stream, *kernel);
        }
        queue
    }

    fn popped(queue: &mut ReadyQueue<char>) -> String {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    fn turned(queue: &mut ReadyQueue<char>) -> Vec<(u32, String)> {
        let groups = queue.turn().into_iter();
        groups
            .map(|(stream, kernels)| (stream, kernels.into_iter().collect()))
            .collect()
    }

    #[test]
    fn kernels_of_the_stream_run_here_and_others_go_by_streams() {
        let ready = [(7, 'a'), (0, 'b'), (3, 'c'), (7, 'd'), (0, 'e'), (3, 'f')];
        let mut queue = queue_at(0, &ready);
        assert!(queue.has_others());
        assert_eq!(queue.stream(), 0);
        let groups = [(3, "cf".to_owned()), (7, "ad".to_owned())];
        assert_eq!(turned(&mut queue), groups);
        assert!(!queue.has_others());
        assert_eq!(turned(&mut queue), []);
        queue.push_here('g');
        assert_eq!(popped(&mut queue), "geb");
        assert_eq!(queue.stream(), 0);
    }

    #[test]
    fn queue_moves_to_the_stream_of_the_first_that_waits() {
        let ready = [(1, 'a'), (2, 'b'), (1, 'c'), (3, 'd'), (1, 'e')];
        let mut queue = queue_at(0, &ready);
        // `a` and `d` were swapped, `c` and `e` stood behind already.
        let groups = [(2, "b".to_owned()), (3, "d".to_owned())];
        assert_eq!(turned(&mut queue), groups);
        assert_eq!(queue.stream(), 1);
        assert_eq!(popped(&mut queue), "eac");

        let ready = [(1, 'a'), (1, 'b'), (2, 'c'), (2, 'd'), (2, 'e')];
        let mut queue = queue_at(0, &ready);
        assert_eq!(turned(&mut queue), [(2, "edc".to_owned())]);
        assert_eq!(popped(&mut queue), "ab");

        let mut queue = queue_at(0, &[(1, 'a'), (1, 'b'), (1, 'c')]);
        assert_eq!(turned(&mut queue), []);
        assert_eq!(popped(&mut queue), "cba");
    }

    #[test]
    fn kernels_are_put_below_and_taken_out_by_name() {
        let mut queue = ReadyQueue::of_group((4, vec!['a', 'b', 'a']));
        queue.put_below(vec!['x', 'y']);
        assert_eq!(queue.take(|kernel| *kernel == 'z'), None);
        assert_eq!(queue.take(|kernel| *kernel == 'b'), Some('b'));
        assert_eq!(queue.stream(), 4);
        assert_eq!(queue.take_here().collect::<String>(), "xyaa");
        assert_eq!(queue.pop(), None);
    }
}
