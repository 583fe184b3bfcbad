/*
 * nudge.h - a tiny, explainable memory for coding agents: component -> key -> hint.
 *
 * Made from bindings/c by cbindgen; edit the sources there. README.md beside them has a first example.
 *
 * CONVENTIONS
 *
 * Texts      are UTF-8 with a length: `nudge_str`. They need not end in NUL and may hold it. {NULL, 0} is "not
 *            given"; {NULL, n} is refused. `nudge_cstr` makes one of a C string. What the library returns does
 *            not end in NUL: print it by "%.*s".
 *
 * Structs    for params begin with `struct_size`: zero the struct, then set it to the struct's sizeof. What is
 *            zero is not given. Later versions only append fields, so programs that were built before go on
 *            working; a field that the loaded library does not know is refused unless it is zero.
 *
 * Numbers    that stand for a choice are `uint32_t`; the enumeration that a field names lists them, and any other
 *            is refused.
 *
 * Statuses   A call returns `NUDGE_OK` or a code of `nudge_code`. A refused call has changed nothing; but after
 *            `NUDGE_E_UNAVAILABLE` a server that was stopped meanwhile may still carry it out.
 *
 * Errors     `error`, the last argument, may be NULL. When it is not, and only when the call fails, it receives an
 *            error object with code, reason, message and data, which the caller frees. What stood there before
 *            is overwritten, not freed.
 *
 * Outputs    are written only on success. `out` must not be NULL unless its function says so.
 *
 * Ownership  What a call writes to `out` or `error` is the caller's, to be freed once by the `_free` of its type;
 *            they take NULL. A `nudge_str` that an accessor returns belongs to the handle it was asked of, and
 *            lives as long. What the caller passes in is read during the call, must not change meanwhile, and is never
 *            kept.
 *            Handles do not depend on each other: a view, a match or a result outlives its store.
 *
 * Pointers   A required pointer that is NULL, and any that is not aligned for its type, is `NUDGE_E_INVALID`;
 *            nothing is read or written through it. (An `error` that is not aligned is not written to.) Accessors
 *            of such a handle return 0, or {NULL, 0}, and a `_free` does nothing. Other wrong pointers cannot be
 *            seen.
 *
 * Threads    Every handle may be used by any number of threads at once, and freed by any: but only when no other
 *            uses it any more. There is no thread-local and no global state.
 *
 * Defects    A panic never leaves the library: the call returns `NUDGE_E_INTERNAL`, an accessor its empty value.
 *            (A message then goes to stderr.) Only running out of memory or of stack ends the process.
 *
 * Secrets    No error, reason or log line repeats a value. Values of hints marked secret are given by `nudge_get`
 *            and `nudge_view_get` alone, and by `nudge_call` as its method says.
 *
 * Forks      A store of this process is copied by a fork like all memory; fork while no other thread uses it. A
 *            child's calls to a session open connections of their own.
 *
 * Versions   `nudge_abi_version()` is what the loaded library has, `NUDGE_ABI_VERSION` what this header has; a
 *            program that loads the library by itself compares them first.
 */


#ifndef NUDGE_H
#define NUDGE_H

#include <stddef.h>
#include <stdint.h>

// The version of the interface that this header describes; grows when a program has to be built anew.
#define NUDGE_ABI_VERSION 1

// The codes of Nudge's error model, and one for a defect of the library.
typedef enum nudge_code {
  // Done.
  NUDGE_OK = 0,
  // A type, size, range or schema rule is broken; a pointer is NULL; a text is not UTF-8.
  NUDGE_E_INVALID = 40001,
  // The secret guard refused a text.
  NUDGE_E_SECRET_REJECTED = 40002,
  // An illegal glob, or a path that could escape.
  NUDGE_E_SCOPE_INVALID = 40003,
  // No such component, key or variant, or none fits the context.
  NUDGE_E_NOT_FOUND = 40401,
  // `if_match_version` differs from the stored version.
  NUDGE_E_CONFLICT = 40901,
  // A limit of the store is reached.
  NUDGE_E_QUOTA = 42901,
  // The session's server, or its journal, cannot be reached.
  NUDGE_E_UNAVAILABLE = 50301,
  // There is no such method.
  NUDGE_E_UNKNOWN_METHOD = -32601,
  // The params of a method are no JSON object. The reason is `E_INVALID`.
  NUDGE_E_PARAMS_NOT_OBJECT = -32602,
  // The library panicked, which is a defect. The effect of the call is unknown.
  NUDGE_E_INTERNAL = -32603,
} nudge_code;

// Template languages.
typedef enum nudge_format {
  // Mustache.
  NUDGE_FORMAT_MUSTACHE = 1,
  // Handlebars.
  NUDGE_FORMAT_HANDLEBARS = 2,
  // Jinja.
  NUDGE_FORMAT_JINJA = 3,
  // `${name}`.
  NUDGE_FORMAT_INTERPOLATE = 4,
} nudge_format;

// Operating systems, as bits.
typedef enum nudge_os {
  // Linux.
  NUDGE_OS_LINUX = 1,
  // macOS.
  NUDGE_OS_DARWIN = 2,
  // Windows.
  NUDGE_OS_WINDOWS = 4,
} nudge_os;

// Says if a value is a credential.
typedef enum nudge_sensitivity {
  // A secret: redacted wherever people look, never written to disk.
  NUDGE_SENSITIVITY_SECRET = 1,
  // An ordinary value.
  NUDGE_SENSITIVITY_NORMAL = 2,
} nudge_sensitivity;

// Shells that a command may be written for.
typedef enum nudge_shell {
  // bash.
  NUDGE_SHELL_BASH = 1,
  // sh.
  NUDGE_SHELL_SH = 2,
  // `PowerShell`.
  NUDGE_SHELL_POWERSHELL = 3,
  // cmd.
  NUDGE_SHELL_CMD = 4,
  // zsh.
  NUDGE_SHELL_ZSH = 5,
  // fish.
  NUDGE_SHELL_FISH = 6,
} nudge_shell;

// The source of a hint.
typedef enum nudge_source {
  // A person.
  NUDGE_SOURCE_USER = 1,
  // A coding agent.
  NUDGE_SOURCE_AGENT = 2,
  // The output of a tool.
  NUDGE_SOURCE_TOOL_OUTPUT = 3,
  // An import.
  NUDGE_SOURCE_FILE_IMPORT = 4,
} nudge_source;

// On, off, or as it is by default.
typedef enum nudge_switch {
  // As it is by default.
  NUDGE_DEFAULT = 0,
  // On.
  NUDGE_ON = 1,
  // Off.
  NUDGE_OFF = 2,
} nudge_switch;

// The types of a value.
typedef enum nudge_value_type {
  // A plain string.
  NUDGE_VALUE_TEXT = 0,
  // A command line.
  NUDGE_VALUE_COMMAND = 1,
  // An absolute path.
  NUDGE_VALUE_PATH = 2,
  // A text with holes.
  NUDGE_VALUE_TEMPLATE = 3,
  // JSON.
  NUDGE_VALUE_JSON = 4,
} nudge_value_type;

// The context of a caller, checked. It is immutable and threads may share it; free it with `nudge_context_free`. Make
// one per place and keep it.
typedef struct nudge_context nudge_context;

// Why a call was refused. Immutable, may be read by any thread; free it with `nudge_error_free`.
typedef struct nudge_error nudge_error;

// A hint that fits, as it was when it was found. Immutable, may be read by any thread; free it with
// `nudge_match_free`.
typedef struct nudge_match nudge_match;

// The answer of a method: JSON text, whose parts can be read without a JSON library. It is immutable and any thread
// may read it; free it with `nudge_result_free`.
typedef struct nudge_result nudge_result;

// A store of this process, or the session that the machine's `nudge serve` processes share. May be used by
// any number of threads at once; free it with `nudge_store_free`.
typedef struct nudge_store nudge_store;

// A store seen from one context: the quickest way to look up repeatedly. It keeps the parts of both that it needs,
// sees every change of the store, and any number of threads may use it; free it with `nudge_view_free`.
typedef struct nudge_view nudge_view;

// UTF-8 text of `len` bytes, which need not end in NUL and may hold it. `{NULL, 0}` is "not given".
typedef struct nudge_str {
  // The first byte.
  const char *ptr;
  // How many bytes.
  size_t len;
} nudge_str;

// The result of a call: `NUDGE_OK`, or a code of `nudge_code`. A server that is newer than the library may send
// another code, with that server's reason in the error.
typedef int32_t nudge_status;

// A name with a value.
typedef struct nudge_pair {
  // The name.
  struct nudge_str name;
  // The value.
  struct nudge_str value;
} nudge_pair;

// A list of names with values; `{NULL, 0}` is the empty one.
typedef struct nudge_pairs {
  // The first pair.
  const struct nudge_pair *ptr;
  // How many pairs.
  size_t len;
} nudge_pairs;

// A list of texts; `{NULL, 0}` is the empty one.
typedef struct nudge_strs {
  // The first text.
  const struct nudge_str *ptr;
  // How many texts.
  size_t len;
} nudge_strs;

// The context of a caller, to be checked by `nudge_context_new`. A field not given is unknown: a hint that asks for it
// does not fit.
typedef struct nudge_context_params {
  // `sizeof(nudge_context_params)`.
  size_t struct_size;
  // Absolute folder without `..`, at most 4,096 bytes.
  struct nudge_str cwd;
  // Repository in any spelling: `org/repo`, `host/org/repo`, a git URL, `file:///path`.
  struct nudge_str repo;
  // Branch.
  struct nudge_str branch;
  // A bit of `nudge_os`; 0 is unknown.
  uint32_t os;
  // 0.
  uint32_t reserved;
  // Environment variables, at most 256 with values of at most 32 KiB. A value that is not given says that
  // the variable is not set.
  struct nudge_pairs env;
  // Open files, at most 256. A hint ranks higher if its component is a segment of their paths.
  struct nudge_strs files_open;
} nudge_context_params;

// The key to look up.
typedef struct nudge_get_params {
  // `sizeof(nudge_get_params)`.
  size_t struct_size;
  // The component.
  struct nudge_str component;
  // The key.
  struct nudge_str key;
  // The context of the caller; NULL: nowhere in particular.
  const struct nudge_context *context;
} nudge_get_params;

// The addends of a score; they sum to it.
typedef struct nudge_parts {
  // Use, decayed: 0 to 0.30.
  double frecency;
  // 0.02 to 0.20.
  double priority;
  // 0 to 0.20.
  double confidence;
  // Given fields of the scope: 0 to 0.20.
  double scope_specificity;
  // Age since the last set: 0 to 0.10.
  double recency;
  // An open file of the component: at most 0.05.
  double files_open;
} nudge_parts;

// Limits and switches of a store; 0 and "not given" stand for the default.
typedef struct nudge_config {
  // `sizeof(nudge_config)`.
  size_t struct_size;
  // Most components, 500.
  uint64_t max_components;
  // Most hints in one component, variants counted, 200.
  uint64_t max_hints_per_component;
  // Most hints in all, 5,000.
  uint64_t max_hints;
  // Most bytes of all hints as exported, 24 MiB.
  uint64_t max_bytes;
  // Most suggestions to one client session in 10 minutes, 20.
  uint64_t suggest_max;
  // The ttl of hints stored without one, `session`: or a duration such as `PT2H`.
  struct nudge_str default_ttl;
  // A value of `nudge_switch`: on refuses texts that look like credentials; on by default.
  uint32_t secret_guard;
  // 1: settings not given here are read from the environment (`NUDGE_MAX_HINTS` and so on).
  uint32_t from_env;
} nudge_config;

// The conditions of a hint: all that are given must hold. An empty one applies everywhere.
typedef struct nudge_scope {
  // `sizeof(nudge_scope)`.
  size_t struct_size;
  // Folders, as globs: `*` within a name, `**` across; `dir/**` is `dir` and all below. At most 16 of 512
  // bytes.
  struct nudge_strs cwd_glob;
  // Repositories, in any spelling.
  struct nudge_strs repo;
  // Branches, as globs: `hotfix/*`. At most 16 of 512 bytes.
  struct nudge_strs branch;
  // Bits of `nudge_os`.
  uint32_t os;
  // 0.
  uint32_t reserved;
  // Environment variables that must be set.
  struct nudge_strs env_required;
  // Environment variables and the value each must have; a name that stands there again may have either.
  struct nudge_pairs env_match;
} nudge_scope;

// A hint to store. Fields that are 0, NULL or not given are left out.
typedef struct nudge_set_params {
  // `sizeof(nudge_set_params)`.
  size_t struct_size;
  // A service, module or folder name, at most 256 bytes.
  struct nudge_str component;
  // The key, such as `build`, at most 256 bytes.
  struct nudge_str key;
  // The value's text: the string, the command, the path, the template's body, or JSON. At most 64 KiB.
  struct nudge_str value;
  // A value of `nudge_value_type`.
  uint32_t value_type;
  // For commands, one of `nudge_shell`.
  uint32_t shell;
  // For paths, bits of `nudge_os`.
  uint32_t path_os;
  // For templates, one of `nudge_format`; required there.
  uint32_t format;
  // For templates, values for holes that are left open.
  struct nudge_pairs defaults;
  // Why it is worth knowing, at most 2 KiB.
  struct nudge_str reason;
  // At most 32 tags of 1 to 64 bytes.
  struct nudge_strs tags;
  // 1 to 10; 5 when left out.
  uint32_t priority;
  // A value of `nudge_sensitivity`; secret exempts the value from the guard and hides it.
  uint32_t sensitivity;
  // 0 to 1; 0.5 when left out.
  const double *confidence;
  // `session`, or a duration such as `PT2H` that counts from the last set.
  struct nudge_str ttl;
  // The scope; the hint applies everywhere without it.
  const struct nudge_scope *scope;
  // The author, free text such as `agent:codex`, at most 256 bytes.
  struct nudge_str added_by;
  // A value of `nudge_source`.
  uint32_t source;
  // 1: the secret guard's finding is a false alarm.
  uint32_t allow_secret;
  // Refuse unless this is the stored version; 0: unless there is none.
  const uint64_t *if_match_version;
  // Update this variant and keep its scope; the empty text is the unscoped one.
  struct nudge_str variant;
} nudge_set_params;

// The hint that did its work.
typedef struct nudge_bump_params {
  // `sizeof(nudge_bump_params)`.
  size_t struct_size;
  // The component.
  struct nudge_str component;
  // The key.
  struct nudge_str key;
  // The context that `nudge_get` was called with; a key with several variants needs it, or `variant`.
  const struct nudge_context *context;
  // This variant, whatever the context; the empty text is the unscoped one.
  struct nudge_str variant;
  // How many uses to add, 1 to 1,000; 0 stands for 1.
  uint64_t delta;
} nudge_bump_params;

// The hint to forget.
typedef struct nudge_delete_params {
  // `sizeof(nudge_delete_params)`.
  size_t struct_size;
  // The component.
  struct nudge_str component;
  // The key.
  struct nudge_str key;
  // This variant; the empty text is the unscoped one.
  struct nudge_str variant;
  // 1: every variant. A key with several needs this or `variant`.
  uint32_t all;
  // 0.
  uint32_t reserved;
} nudge_delete_params;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the interface of the loaded library: the value of `NUDGE_ABI_VERSION` when it was built.
uint32_t nudge_abi_version(void);

// The version of the library, such as `0.1.0`. Static.
struct nudge_str nudge_version(void);

// Makes a context of facts that the caller knows.
//
// `NUDGE_E_INVALID` for a relative `cwd`, one with `..`, a repository that cannot be read, or a size over a
// limit.
nudge_status nudge_context_new(const struct nudge_context_params *params,
                               struct nudge_context **out,
                               struct nudge_error **error);

// Makes a context from facts that this process finds about `cwd`, an absolute folder, else about its own folder:
// repository and branch by git's files, the system, and the process's environment. A session gets only the variables
// that its hints ask for. `files_open` are as in `nudge_context_params`.
//
// This call reads the environment: the program must not change it meanwhile.
nudge_status nudge_context_detect(struct nudge_str cwd,
                                  struct nudge_strs files_open,
                                  struct nudge_context **out,
                                  struct nudge_error **error);

// Frees a context; NULL is fine. Views that were made with it stay as they are.
void nudge_context_free(struct nudge_context *context);

// Returns the code of the call; 0 for NULL.
nudge_status nudge_error_code(const struct nudge_error *error);

// Returns the stable name, such as `E_NOT_FOUND`; lives as long as the error.
struct nudge_str nudge_error_reason(const struct nudge_error *error);

// Returns a plain sentence that says what to do and holds no secret. It lives as long as the error.
struct nudge_str nudge_error_message(const struct nudge_error *error);

// Returns details for a program as a JSON object: `reason`, and the fields of the kind (`near_misses` and
// `missing_context`, `current_version`, `limit` and `max`, `rule` and `path`). It lives as long as the error.
struct nudge_str nudge_error_data(const struct nudge_error *error);

// Frees an error; NULL is fine.
void nudge_error_free(struct nudge_error *error);

// Finds the best hint of a key that fits.
//
// `NUDGE_E_NOT_FOUND` when there is none; the error's data say why (`near_misses`, `missing_context`).
nudge_status nudge_get(const struct nudge_store *store,
                       const struct nudge_get_params *params,
                       struct nudge_match **out,
                       struct nudge_error **error);

// Binds a store to a context; NULL for the latter is an empty one.
nudge_status nudge_view_new(const struct nudge_store *store,
                            const struct nudge_context *context,
                            struct nudge_view **out,
                            struct nudge_error **error);

// As `nudge_get`, from the view's context.
nudge_status nudge_view_get(const struct nudge_view *view,
                            struct nudge_str component,
                            struct nudge_str key,
                            struct nudge_match **out,
                            struct nudge_error **error);

// Frees a view; NULL is fine.
void nudge_view_free(struct nudge_view *view);

// The value's text: the string, the command, the path, the template's body, or compact JSON. In full even
// when the hint is secret. Lives as long as the match.
struct nudge_str nudge_match_value(const struct nudge_match *found);

// The value's type, one of `nudge_value_type`.
uint32_t nudge_match_value_type(const struct nudge_match *found);

// Returns the variant of the key: twelve hex digits, or empty when it applies everywhere. It lives as long as the
// match.
struct nudge_str nudge_match_variant(const struct nudge_match *found);

// Returns 1 when the value is a secret, which must not be shown; else 0.
uint32_t nudge_match_is_secret(const struct nudge_match *found);

// How often it was set.
uint64_t nudge_match_version(const struct nudge_match *found);

// Returns the score, 0 to 1; a session tells four decimals.
double nudge_match_score(const struct nudge_match *found);

// The addends of its score; all 0 for NULL.
struct nudge_parts nudge_match_parts(const struct nudge_match *found);

// How many reasons there are why it was chosen.
size_t nudge_match_reason_count(const struct nudge_match *found);

// Returns a reason, counted from 0, such as `branch=dev allowed`; "not given" past the last one. It lives as long as
// the match.
struct nudge_str nudge_match_reason(const struct nudge_match *found,
                                    size_t position);

// Returns all of it as JSON, `{"hint": ..., "match_explain": ...}`, as `nudge.get_hint` does. It lives as long as the
// match.
struct nudge_str nudge_match_json(const struct nudge_match *found);

// Frees a match; NULL is fine.
void nudge_match_free(struct nudge_match *found);

// The text of a C string that ends in NUL; "not given" for NULL.
struct nudge_str nudge_cstr(const char *text);

// The whole result as compact JSON. Lives as long as the result.
struct nudge_str nudge_result_json(const struct nudge_result *result);

// The string at a JSON pointer (RFC 6901) such as `/hints/0/hint/key`. Lives as long as the result.
//
// `NUDGE_E_NOT_FOUND` when nothing is there, `NUDGE_E_INVALID` when it is no string.
nudge_status nudge_result_text(const struct nudge_result *result,
                               struct nudge_str pointer,
                               struct nudge_str *out,
                               struct nudge_error **error);

// The number at a JSON pointer, as a double.
//
// `NUDGE_E_NOT_FOUND` when nothing is there, `NUDGE_E_INVALID` when it is no number.
nudge_status nudge_result_number(const struct nudge_result *result,
                                 struct nudge_str pointer,
                                 double *out,
                                 struct nudge_error **error);

// How many elements the array at a JSON pointer has.
//
// `NUDGE_E_NOT_FOUND` when nothing is there, `NUDGE_E_INVALID` when it is no array.
nudge_status nudge_result_count(const struct nudge_result *result,
                                struct nudge_str pointer,
                                size_t *out,
                                struct nudge_error **error);

// Frees a result; NULL is fine.
void nudge_result_free(struct nudge_result *result);

// Makes an empty store in this process. `config` may be NULL for the defaults.
nudge_status nudge_store_new(const struct nudge_config *config,
                             struct nudge_store **out,
                             struct nudge_error **error);

// Opens the running session of a runtime directory: the one given, else that of `NUDGE_RUNTIME_DIR`, else the default
// one. `client` names the caller, for people who ask later which client did what; it may be left out.
//
// Calls on such a store block, and go on with the next server when one ends. A child process that was
// forked opens connections of its own. `NUDGE_E_UNAVAILABLE` when no `nudge serve` runs there.
nudge_status nudge_connect(struct nudge_str runtime_dir,
                           struct nudge_str client,
                           struct nudge_store **out,
                           struct nudge_error **error);

// Frees a store; NULL is fine. Views and matches that were made with it stay as they are.
void nudge_store_free(struct nudge_store *store);

// Calls any method by its name, such as `nudge.query`; `nudge_method_name` lists them.
//
// `params` is a JSON object, or not given for `{}`. `context` may be NULL; else it is the `context` of the
// params, which may not have another. `out` may be NULL when the result does not matter.
nudge_status nudge_call(const struct nudge_store *store,
                        struct nudge_str method,
                        struct nudge_str params,
                        const struct nudge_context *context,
                        struct nudge_result **out,
                        struct nudge_error **error);

// How many methods there are.
size_t nudge_method_count(void);

// The name of a method, counted from 0, such as `nudge.get_hint`; "not given" past the last one. Static.
struct nudge_str nudge_method_name(size_t position);

// Stores a hint, or updates the variant with an equal scope.
//
// `out` may be NULL; the result is that of `nudge.set_hint`, `{"hint", "variants"}`, and `"previous"`, the hint that stood
// there with another value. Refusals, in this order: `NUDGE_E_INVALID`, `NUDGE_E_SCOPE_INVALID`, `NUDGE_E_SECRET_REJECTED`, `NUDGE_E_NOT_FOUND` (unknown
// `variant`), `NUDGE_E_CONFLICT`, `NUDGE_E_QUOTA`.
nudge_status nudge_set(const struct nudge_store *store,
                       const struct nudge_set_params *params,
                       struct nudge_result **out,
                       struct nudge_error **error);

// Counts a use of a hint, which raises it for next time.
//
// `out` may be NULL; the result is that of `nudge.bump`, `{"hint"}`. `NUDGE_E_INVALID` when the key has several
// variants and neither `context` nor `variant` is given, `NUDGE_E_NOT_FOUND`.
nudge_status nudge_bump(const struct nudge_store *store,
                        const struct nudge_bump_params *params,
                        struct nudge_result **out,
                        struct nudge_error **error);

// Deletes a hint, one of its variants, or all of them.
//
// `out` may be NULL; the result is that of `nudge.delete_hint`, `{"deleted", "previous", "deleted_count"}`.
// `NUDGE_E_INVALID` when the key has several variants and neither `variant` nor `all` is given,
// `NUDGE_E_NOT_FOUND`.
nudge_status nudge_delete(const struct nudge_store *store,
                          const struct nudge_delete_params *params,
                          struct nudge_result **out,
                          struct nudge_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NUDGE_H */
