//! Exports `get` directly through Node-API, because the conversions of `#[napi]` would cost more than the lookup.
#![allow(unsafe_code)]

use std::panic::catch_unwind;
use std::ptr;

use napi::bindgen_prelude::{JsValue, Object, check_status};
use napi::{Env, sys};
use napi_derive::napi;

use crate::handles::{StoreHandle, with_handle};

/// The result of `get` when a number is unknown or its store is closed.
const UNKNOWN: f64 = -1.0;

/// Adds the function `get(store, view, pair)` to the exports.
#[napi(module_exports, catch_unwind)]
pub fn add_get(exports: Object, env: Env) -> napi::Result<()> {
    let mut function = ptr::null_mut();
    // SAFETY: `env` is the environment that loads this module, on its thread. The name is a literal with its length,
    // `get` has the signature of a callback, and `function` and `exports` are values of this scope.
    unsafe {
        check_status!(sys::napi_create_function(
            env.raw(),
            c"get".as_ptr(),
            3,
            Some(get),
            ptr::null_mut(),
            &raw mut function
        ))?;
        check_status!(sys::napi_set_named_property(env.raw(), exports.raw(), c"get".as_ptr(), function))
    }
}

/// Returns the token of a lookup: 0 when no hint fits, or [`UNKNOWN`].
unsafe extern "C" fn get(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let mut arguments = [ptr::null_mut(); 3];
    let mut count = arguments.len();
    let mut numbers = [u32::MAX; 3];
    // SAFETY: Node calls this function with an environment and the call's info, which are valid until it returns.
    // `arguments` has room for `count` values, and Node sets missing arguments to undefined.
    unsafe {
        sys::napi_get_cb_info(env, info, &raw mut count, arguments.as_mut_ptr(), ptr::null_mut(), ptr::null_mut());
        for (argument, number) in arguments.into_iter().zip(&mut numbers) {
            // If an argument is not a number, its place keeps `u32::MAX`, which is an unknown number.
            sys::napi_get_value_uint32(env, argument, number);
        }
    }
    let [store, view, pair] = numbers;
    let look = |handle: &mut StoreHandle| handle.get(view, pair);
    let found = catch_unwind(|| with_handle(store, look).ok().flatten().unwrap_or(UNKNOWN));
    let mut result = ptr::null_mut();
    // SAFETY: `env` is still valid, and the texts end with a zero byte. `result` is written before it is returned, or
    // stays null, which Node reads as undefined.
    unsafe {
        match found {
            Ok(token) => sys::napi_create_double(env, token, &raw mut result),
            Err(_) => sys::napi_throw_error(
                env,
                c"GenericFailure".as_ptr(),
                c"nudge-hints has failed; please report it".as_ptr(),
            ),
        };
    }
    result
}
