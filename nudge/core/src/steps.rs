//! Steps: count the work of judging scopes, so that the limit of a call is the same on every machine.

use crate::error::Error;

/// The most steps of a call. A step compares about one character, so a call takes at most tens of milliseconds. An
/// ordinary call takes a hundredth of that.
pub const MAX_STEPS: u64 = 1 << 23;
/// The most steps of a call on an event loop. They take a fraction of a millisecond.
const MAX_INLINE_STEPS: u64 = 1 << 16;
/// The name of the limit in an error's data.
const LIMIT: &str = "steps";

/// The number of steps that a call may still take.
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
}

/// The error for a call that has no steps left, so that its verdict is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

impl StepBudget {
    /// Makes the budget of one call: [`MAX_STEPS`].
    pub const fn of_a_call() -> Self {
        Self { left: MAX_STEPS }
    }

    /// Makes the budget of a call on an event loop. If the steps do not suffice, [`Error::lacks_steps`] is true for the
    /// error, and the caller makes the call again on a thread.
    pub const fn of_an_inline_call() -> Self {
        Self { left: MAX_INLINE_STEPS }
    }

    /// Makes a budget without a limit, for callers that delay only themselves.
    pub const fn unlimited() -> Self {
        Self { left: u64::MAX }
    }

    /// Returns the number of steps left.
    pub const fn remaining(&self) -> u64 {
        self.left
    }

    /// Takes `count` steps from the budget.
    ///
    /// # Errors
    /// [`TooMany`] when fewer steps are left; the budget is then empty.
    #[inline]
    pub fn take_steps(&mut self, count: usize) -> Result<(), TooMany> {
        let left = self.left.checked_sub(count as u64);
        self.left = left.unwrap_or(0);
        left.map(|_| ()).ok_or(TooMany)
    }

    /// Moves at most `count` steps into a budget of their own. [`StepBudget::give_back`] returns the unused ones.
    #[must_use]
    pub fn split_off(&mut self, count: u64) -> Self {
        let count = count.min(self.left);
        self.left -= count;
        Self { left: count }
    }

    /// Adds the unused steps of `rest`, a budget that was split off.
    pub fn give_back(&mut self, rest: &Self) {
        self.left += rest.left;
    }
}

impl From<TooMany> for Error {
    fn from(_: TooMany) -> Self {
        let max = usize::try_from(MAX_STEPS).expect("the limit has 24 bits");
        Self::quota(
            LIMIT,
            max,
            "Comparing the stored scopes with this context takes too long; name a component, give a shorter cwd or \
             branch, or delete hints whose patterns hold many `*` or braces.",
        )
    }
}

impl Error {
    /// Returns true if the call was refused because it had too few steps.
    pub fn lacks_steps(&self) -> bool {
        self.data().get("limit").is_some_and(|limit| limit == LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_cannot_be_taken() {
        let mut steps = StepBudget::of_a_call();
        let mut some = steps.split_off(10);
        some.take_steps(4).unwrap();
        steps.give_back(&some);
        assert_eq!(steps.remaining(), MAX_STEPS - 4);
        let refused = Error::from(steps.take_steps(usize::MAX).unwrap_err());
        assert!(steps.take_steps(1).is_err());
        assert_eq!((refused.reason(), refused.lacks_steps()), ("E_QUOTA", true));
    }
}
