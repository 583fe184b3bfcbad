//! Sets the name by which programs find the shared library at run time.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    // The number is `NUDGE_ABI_VERSION`; a test compares them.
    match os.as_str() {
        "linux" | "android" | "freebsd" | "netbsd" | "openbsd" => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnudge.so.1");
        }
        "macos" => println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libnudge.1.dylib"),
        _ => {}
    }
}
