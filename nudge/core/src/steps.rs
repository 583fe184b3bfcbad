//! Steps: the work of judging scopes, counted, so that one call has a limit that is the same on every machine.

use crate::error::{Error, ErrorKind};

/// Most steps of one call. A step compares about one character, so that a call takes tens of milliseconds at the very
/// worst, and an ordinary one stays a hundred times below.
pub const MAX_STEPS: u64 = 1 << 23;
/// Most steps of a call on an event loop: a fraction of a millisecond.
const STEPS_IN_PASSING: u64 = 1 << 16;
/// The field of an error's data that says that the call wants a thread of its own.
const TAKES_LONG: &str = "takes_long";

/// The steps that a call has left.
///
/// ```
/// use nudge_core::{context::Context, scope::{Scope, ScopeSpec}, steps::StepBudget};
/// let scope = Scope::new(&ScopeSpec { cwd_glob: vec!["/work/**".into()], ..ScopeSpec::default() })?;
/// let here = Context::builder().cwd("/work/api").build()?;
/// assert!(scope.judge(&here, &mut StepBudget::of_a_call())?);
/// # Ok::<(), nudge_core::error::Error>(())
/// ```
#[derive(Debug)]
pub struct StepBudget {
    left: u64,
    in_passing: bool,
}

/// A call has no steps left: its question is undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany {
    in_passing: bool,
}

impl StepBudget {
    /// All that one call may take: [`MAX_STEPS`].
    pub const fn of_a_call() -> Self {
        Self { left: MAX_STEPS, in_passing: false }
    }

    /// Returns the steps of a call on an event loop. When they do not suffice, it is refused with an error that
    /// [`Error::takes_long`] knows, to be made again on another thread.
    pub const fn in_passing() -> Self {
        Self { left: STEPS_IN_PASSING, in_passing: true }
    }

    /// Returns steps without a limit, for callers that delay only themselves.
    pub const fn unlimited() -> Self {
        Self { left: u64::MAX, in_passing: false }
    }

    /// Returns true for those of [`StepBudget::in_passing`].
    pub const fn are_in_passing(&self) -> bool {
        self.in_passing
    }

    /// Returns how many are left.
    pub const fn remaining(&self) -> u64 {
        self.left
    }

    /// Takes some.
    ///
    /// # Errors
    /// When there are not so many left; then none are.
    #[inline]
    pub fn take_steps(&mut self, count: usize) -> Result<(), TooMany> {
        let left = self.left.checked_sub(count as u64);
        self.left = left.unwrap_or(0);
        left.map(|_| ()).ok_or(TooMany { in_passing: self.in_passing })
    }

    /// Splits off `count` at the most; [`StepBudget::give_back`] returns the unused ones.
    #[must_use]
    pub fn split_off(&mut self, count: u64) -> Self {
        let count = count.min(self.left);
        self.left -= count;
        Self { left: count, in_passing: self.in_passing }
    }

    /// Adds the unused steps of `rest`.
    pub fn give_back(&mut self, rest: &Self) {
        self.left += rest.left;
    }
}

impl From<TooMany> for Error {
    fn from(too_many: TooMany) -> Self {
        if too_many.in_passing {
            return Self::new(ErrorKind::Unavailable, "This call takes long; make it again, on another thread.")
                .with_data(TAKES_LONG, true);
        }
        // It fits: the limit has 24 bits.
        let max = usize::try_from(MAX_STEPS).unwrap_or(usize::MAX);
        Self::quota(
            "steps",
            max,
            "Comparing the stored scopes with this context takes too long; name a component, give a shorter cwd or \
             branch, or delete hints whose patterns hold many `*` or braces.",
        )
    }
}

impl Error {
    /// Returns true for the refusal of a call that was tried in passing and needs a thread of its own.
    pub fn takes_long(&self) -> bool {
        self.data().contains_key(TAKES_LONG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_cannot_be_taken() {
        let mut steps = StepBudget::in_passing();
        let mut some = steps.split_off(10);
        some.take_steps(4).unwrap();
        steps.give_back(&some);
        assert_eq!(steps.remaining(), STEPS_IN_PASSING - 4);
        let refused = Error::from(steps.take_steps(usize::MAX).unwrap_err());
        assert!(refused.takes_long() && steps.take_steps(1).is_err());
        let refused = Error::from(StepBudget::of_a_call().take_steps(usize::MAX).unwrap_err());
        assert_eq!(
            (refused.reason(), refused.takes_long(), &refused.data()["limit"]),
            ("E_QUOTA", false, &"steps".into())
        );
    }
}
