//! Views of tensors that calls hold, in places that each thread keeps for them.
//!
//! Most handles that a plugin makes are views of inputs and outputs, which the plugin deletes before its kernel returns. A
//! view is not counted: it is there for as long as the call at most, which ends by making those that are left tensors that
//! count their memory ([`end`]). Places that calls have used and emptied are used by the next call, one after another.

use std::cell::Cell;

use super::Handle;
use super::kinds::Viewed;
use super::place::Place;
use super::table::{N_MADE, TABLE};
use crate::lent::View;
use crate::value::Tensor;

/// The most places that a thread keeps.
const N_KEPT: usize = 16;

/// The tensor of a call that a view leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The input of an index.
    Input(usize),
    /// An output.
    Output,
}

/// A place that a thread keeps, once there is one, and what the view in it is of.
struct Kept {
    place: Cell<Option<&'static Place>>,
    index: Cell<u32>,
    of: Cell<Of>,
}

/// Places of a thread. The first ones hold the views of the calls that run on it, those of inner calls behind those of outer
/// ones.
struct Places {
    all: [Kept; N_KEPT],
    n_used: Cell<usize>,
}

thread_local! {
    static PLACES: Places = const {
        Places {
            all: [const {
                Kept {
                    place: Cell::new(None),
                    index: Cell::new(0),
                    of: Cell::new(Of::Output),
                }
            }; N_KEPT],
            n_used: Cell::new(0),
        }
    };
}

impl Kept {
    /// Returns the place, which is taken from the free ones if there is none yet.
    #[inline(always)]
    fn place(&self) -> Option<&'static Place> {
        match self.place.get() {
            Some(place) => Some(place),
            None => self.more(),
        }
    }

    #[cold]
    #[inline(never)]
    fn more(&self) -> Option<&'static Place> {
        GIVE_BACK.try_with(|_| ()).ok()?;
        let index = TABLE.take_place()?;
        let place = TABLE.place(index)?;
        place.keep();
        self.index.set(index);
        self.place.set(Some(place));
        Some(place)
    }

    /// Leaves the place to what is in it, if there is something.
    #[cold]
    #[inline(never)]
    fn leave(&self) {
        if let Some(place) = self.place.take()
            && place.keep_no_more()
        {
            TABLE.free_place(self.index.get());
        }
    }
}

/// Gives the places of a thread back when the thread ends. Apart from the list, which so needs no destructor: that would be
/// asked for each time.
struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        PLACES.with(|own| {
            own.all.iter().for_each(Kept::leave);
            // No call begins on this thread any more that is given places.
            own.n_used.set(N_KEPT);
        });
    }
}

thread_local! {
    static GIVE_BACK: GiveBack = const { GiveBack };
}

/// Returns how many views the calls have that run on this thread: a call that begins has those that come from here on.
#[inline]
pub fn begin() -> usize {
    PLACES.with(|own| own.n_used.get())
}

/// Puts a view into a place for the call that runs on this thread, if there is room.
#[inline(always)]
pub fn put(of: Of, view: View) -> Option<Handle<Tensor>> {
    let put = |own: &Places| {
        let n_used = own.n_used.get();
        let kept = own.all.get(n_used)?;
        let place = kept.place()?;
        kept.of.set(of);
        own.n_used.set(n_used + 1);
        let generation = place.fill::<Tensor>(Viewed::View(view));
        N_MADE.set(N_MADE.get() + 1);
        Some(Handle::of_place(generation, kept.index.get()))
    };
    PLACES.with(put)
}

/// Returns whether a plugin may hold a view of a tensor that a call, which began so, has put into a place.
pub fn has(from: usize, of: Of) -> bool {
    let is_of =
        |kept: &Kept| kept.of.get() == of && kept.place.get().is_some_and(Place::has_object);
    let has = |own: &Places| used(own, from).iter().any(is_of);
    PLACES.with(has)
}

/// Ends a call that began so: views that are left count the memory of their tensors.
#[inline]
pub fn end(from: usize) {
    PLACES.with(|own| {
        used(own, from).iter().for_each(Kept::end);
        own.n_used.set(from);
    });
}

#[inline(always)]
fn used(own: &Places, from: usize) -> &[Kept] {
    own.all.get(from..own.n_used.get()).unwrap_or_default()
}

impl Kept {
    /// Ends the view, if it is there.
    #[inline(always)]
    fn end(&self) {
        if self.place.get().is_some_and(Place::has_object) {
            self.leave();
        }
    }
}
