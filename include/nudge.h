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

// The version of the interface in this header. It grows when programs must be built again.
#define NUDGE_ABI_VERSION 1

// The codes of Nudge's error model, and a code for a defect of the library.
typedef enum nudge_code {
  // The call succeeded.
  NUDGE_OK = 0,
  // An argument breaks a rule of type, size, range or schema, a pointer is NULL, or a text is not UTF-8.
  NUDGE_E_INVALID = 40001,
  // The secret guard refused a text.
  NUDGE_E_SECRET_REJECTED = 40002,
  // The glob is illegal, or the path could leave its folder.
  NUDGE_E_SCOPE_INVALID = 40003,
  // The component, key or variant does not exist, or no variant fits the context.
  NUDGE_E_NOT_FOUND = 40401,
  // `if_match_version` differs from the stored version.
  NUDGE_E_CONFLICT = 40901,
  // A limit of the store is reached.
  NUDGE_E_QUOTA = 42901,
  // The server of the session, or its journal, cannot be reached.
  NUDGE_E_UNAVAILABLE = 50301,
  // The method does not exist.
  NUDGE_E_UNKNOWN_METHOD = -32601,
  // The params of the method are not a JSON object. The reason is `E_INVALID`.
  NUDGE_E_PARAMS_NOT_OBJECT = -32602,
  // The library panicked because of a defect. The effect of the call is unknown.
  NUDGE_E_INTERNAL = -32603,
} nudge_code;

// The languages of templates.
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

// Operating systems, each as a bit.
typedef enum nudge_os {
  // Linux.
  NUDGE_OS_LINUX = 1,
  // macOS.
  NUDGE_OS_DARWIN = 2,
  // Windows.
  NUDGE_OS_WINDOWS = 4,
} nudge_os;

// Says whether a value is a secret.
typedef enum nudge_sensitivity {
  // A secret: hidden wherever users look, and never written to disk.
  NUDGE_SENSITIVITY_SECRET = 1,
  // An ordinary value.
  NUDGE_SENSITIVITY_NORMAL = 2,
} nudge_sensitivity;

// The shells for which a command may be written.
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

// The origin of a hint.
typedef enum nudge_source {
  // A user.
  NUDGE_SOURCE_USER = 1,
  // A coding agent.
  NUDGE_SOURCE_AGENT = 2,
  // The output of a tool.
  NUDGE_SOURCE_TOOL_OUTPUT = 3,
  // An import.
  NUDGE_SOURCE_FILE_IMPORT = 4,
} nudge_source;

// A switch: on, off, or the default.
typedef enum nudge_switch {
  // The default.
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

// A checked context of a caller. It never changes, and threads may share it. Make one for each folder and keep it;
// free it with `nudge_context_free`.
typedef struct nudge_context nudge_context;

// The reason why a call was refused. It never changes, and any thread may read it. Free it with `nudge_error_free`.
typedef struct nudge_error nudge_error;

// A hint that fits, in the state in which it was found. It never changes, and any thread may read it. Free it with
// `nudge_match_free`.
typedef struct nudge_match nudge_match;

// The answer of a method: JSON text. A caller can read its parts without a JSON library. It never changes, and any
// thread may read it. Free it with `nudge_result_free`.
typedef struct nudge_result nudge_result;

// A store in this process, or the session that the machine's `nudge serve` processes share. Any number of threads may
// use it at the same time. Free it with `nudge_store_free`.
typedef struct nudge_store nudge_store;

// A store, seen from one context: the fastest way to look up hints repeatedly. It outlives the store's handle, sees
// every change of the store, and any number of threads may use it. Free it with `nudge_view_free`.
typedef struct nudge_view nudge_view;

// UTF-8 text of `len` bytes. It need not end in NUL and may contain NUL. `{NULL, 0}` is "not given".
typedef struct nudge_str {
  // The first byte.
  const char *ptr;
  // The number of bytes.
  size_t len;
} nudge_str;

// The status of a call: `NUDGE_OK`, or a code of `nudge_code`. A server that is newer than the library may return
// another code; the error then contains the server's reason.
typedef int32_t nudge_status;

// A name with a value.
typedef struct nudge_pair {
  // The name.
  struct nudge_str name;
  // The value.
  struct nudge_str value;
} nudge_pair;

// A list of names with values; `{NULL, 0}` is the empty list.
typedef struct nudge_pairs {
  // The first pair.
  const struct nudge_pair *ptr;
  // The number of pairs.
  size_t len;
} nudge_pairs;

// A list of texts; `{NULL, 0}` is the empty list.
typedef struct nudge_strs {
  // The first text.
  const struct nudge_str *ptr;
  // The number of texts.
  size_t len;
} nudge_strs;

// The facts for `nudge_context_new`. A field that is not given is unknown: a hint whose scope needs the field does not
// fit.
typedef struct nudge_context_params {
  // `sizeof(nudge_context_params)`.
  size_t struct_size;
  // The absolute folder, without `..`, at most 4,096 bytes.
  struct nudge_str cwd;
  // The repository in any spelling: `org/repo`, `host/org/repo`, a git URL, `file:///path`.
  struct nudge_str repo;
  // The branch.
  struct nudge_str branch;
  // A bit of `nudge_os`; 0 means unknown.
  uint32_t os;
  // Must be 0.
  uint32_t reserved;
  // Environment variables: at most 256, with values of at most 32 KiB. If a value is not given, the variable is
  // known not to be set.
  struct nudge_pairs env;
  // Open files, at most 256. A hint ranks higher if its component is a part of one of these paths.
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
  // The context of the caller; NULL for an unknown context.
  const struct nudge_context *context;
} nudge_get_params;

// The terms of a score; their sum is the score.
typedef struct nudge_parts {
  // Uses, of which old ones count less: 0 to 0.30.
  double frecency;
  // The priority: 0.02 to 0.20.
  double priority;
  // The confidence: 0 to 0.20.
  double confidence;
  // The number of given fields in the scope: 0 to 0.20.
  double scope_specificity;
  // The age since the last set: 0 to 0.10.
  double recency;
  // An open file that belongs to the component: at most 0.05.
  double files_open;
} nudge_parts;

// Limits and switches of a store. 0 and "not given" mean the default, which each comment names.
typedef struct nudge_config {
  // `sizeof(nudge_config)`.
  size_t struct_size;
  // The most components: 500.
  uint64_t max_components;
  // The most hints of one component, with all variants: 200.
  uint64_t max_hints_per_component;
  // The most hints: 5,000.
  uint64_t max_hints;
  // The most bytes of all hints in an export: 24 MiB.
  uint64_t max_bytes;
  // The most suggestions to one client session in 10 minutes: 20.
  uint64_t suggest_max;
  // The ttl of hints that are stored without one: `session`, or a duration such as `PT2H`.
  struct nudge_str default_ttl;
  // A value of `nudge_switch`: on refuses texts that look like credentials. The default is on.
  uint32_t secret_guard;
  // 1 to read settings that are not given here from the environment (`NUDGE_MAX_HINTS` and so on).
  uint32_t from_env;
} nudge_config;

// The conditions of a hint. All given conditions must hold. An empty scope applies everywhere.
typedef struct nudge_scope {
  // `sizeof(nudge_scope)`.
  size_t struct_size;
  // Folders, as globs: `*` stands for characters within a name, `**` also across folders. `dir/**` matches `dir` and
  // everything below it. At most 16 globs of 512 bytes.
  struct nudge_strs cwd_glob;
  // Repositories, in any spelling.
  struct nudge_strs repo;
  // Branches, as globs: `hotfix/*`. At most 16 globs of 512 bytes.
  struct nudge_strs branch;
  // Bits of `nudge_os`; 0 for every system.
  uint32_t os;
  // Must be 0.
  uint32_t reserved;
  // Environment variables that must be set.
  struct nudge_strs env_required;
  // Environment variables, each with a value that it must have. If a name occurs several times, any of its values is
  // enough.
  struct nudge_pairs env_match;
} nudge_scope;

// A hint to store. A field that is 0, NULL or not given is left out.
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
  // For a command: one of `nudge_shell`.
  uint32_t shell;
  // For a path: bits of `nudge_os`.
  uint32_t path_os;
  // For a template: one of `nudge_format`; required.
  uint32_t format;
  // For a template: values for holes that a caller leaves open.
  struct nudge_pairs defaults;
  // The reason why the hint is useful, at most 2 KiB.
  struct nudge_str reason;
  // At most 32 tags of 1 to 64 bytes.
  struct nudge_strs tags;
  // From 1 to 10; 0 stands for 5.
  uint32_t priority;
  // A value of `nudge_sensitivity`. A secret value passes the secret guard and is hidden.
  uint32_t sensitivity;
  // From 0 to 1; NULL stands for 0.5.
  const double *confidence;
  // `session`, or a duration such as `PT2H` that starts with the last set.
  struct nudge_str ttl;
  // The scope. With NULL, the hint applies everywhere.
  const struct nudge_scope *scope;
  // The author, free text such as `agent:codex`, at most 256 bytes.
  struct nudge_str added_by;
  // A value of `nudge_source`.
  uint32_t source;
  // 1 if the secret guard's finding is a false alarm.
  uint32_t allow_secret;
  // Refuses the call unless the stored hint has this version. 0 means that no hint may be stored yet.
  const uint64_t *if_match_version;
  // The variant to update; its scope stays. The empty text names the variant without a scope.
  struct nudge_str variant;
} nudge_set_params;

// The hint that was used with success.
typedef struct nudge_bump_params {
  // `sizeof(nudge_bump_params)`.
  size_t struct_size;
  // The component.
  struct nudge_str component;
  // The key.
  struct nudge_str key;
  // The context with which `nudge_get` was called. A key with several variants needs this or `variant`.
  const struct nudge_context *context;
  // The variant to bump, whatever the context. The empty text names the variant without a scope.
  struct nudge_str variant;
  // The number of uses to add, from 1 to 1,000; 0 stands for 1.
  uint64_t delta;
} nudge_bump_params;

// The hint to delete.
typedef struct nudge_delete_params {
  // `sizeof(nudge_delete_params)`.
  size_t struct_size;
  // The component.
  struct nudge_str component;
  // The key.
  struct nudge_str key;
  // The variant to delete. The empty text names the variant without a scope.
  struct nudge_str variant;
  // 1 deletes every variant. A key with several variants needs this or `variant`.
  uint32_t all;
  // Must be 0.
  uint32_t reserved;
} nudge_delete_params;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the interface of the loaded library: the `NUDGE_ABI_VERSION` with which it was built.
uint32_t nudge_abi_version(void);

// Returns the version of the library, such as `0.1.0`. The text is static.
struct nudge_str nudge_version(void);

// Makes a context from facts that the caller passes.
//
// Fails with `NUDGE_E_INVALID` for a `cwd` that is relative or contains `..`, for a repository that cannot be parsed,
// and for a size above a limit.
nudge_status nudge_context_new(const struct nudge_context_params *params,
                               struct nudge_context **out,
                               struct nudge_error **error);

// Makes a context from facts that this process detects about `cwd`, an absolute folder. If `cwd` is not given, uses
// the folder of the process. Reads repository and branch from git's files, and adds the system and the environment of
// the process. A session gets only the variables that its hints mention. `files_open` are the same as in
// `nudge_context_params`.
//
// This call reads the environment, so the program must not change the environment during the call.
nudge_status nudge_context_detect(struct nudge_str cwd,
                                  struct nudge_strs files_open,
                                  struct nudge_context **out,
                                  struct nudge_error **error);

// Frees a context. Ignores NULL. Views that were made with the context stay valid.
void nudge_context_free(struct nudge_context *context);

// Returns the code of the error; 0 for NULL.
nudge_status nudge_error_code(const struct nudge_error *error);

// Returns the stable name of the error, such as `E_NOT_FOUND`. The text lives as long as the error.
struct nudge_str nudge_error_reason(const struct nudge_error *error);

// Returns a plain sentence that says what to do. It contains no secret. The text lives as long as the error.
struct nudge_str nudge_error_message(const struct nudge_error *error);

// Returns details for programs as a JSON object: `reason`, and the fields of this kind of error (`near_misses` and
// `missing_context`, `current_version`, `limit` and `max`, `rule` and `path`). The text lives as long as the error.
struct nudge_str nudge_error_data(const struct nudge_error *error);

// Frees an error. Ignores NULL.
void nudge_error_free(struct nudge_error *error);

// Finds the best hint of a key that fits the context.
//
// Fails with `NUDGE_E_NOT_FOUND` when no hint fits; the error's data say why (`near_misses`, `missing_context`).
nudge_status nudge_get(const struct nudge_store *store,
                       const struct nudge_get_params *params,
                       struct nudge_match **out,
                       struct nudge_error **error);

// Binds a store to a context. NULL stands for an empty context.
nudge_status nudge_view_new(const struct nudge_store *store,
                            const struct nudge_context *context,
                            struct nudge_view **out,
                            struct nudge_error **error);

// Does the same as `nudge_get`, with the view's context.
nudge_status nudge_view_get(const struct nudge_view *view,
                            struct nudge_str component,
                            struct nudge_str key,
                            struct nudge_match **out,
                            struct nudge_error **error);

// Frees a view. Ignores NULL.
void nudge_view_free(struct nudge_view *view);

// Returns the text of the value: the string, the command, the path, the template's body, or compact JSON. Returns the
// full text even when the hint is secret. The text lives as long as the match.
struct nudge_str nudge_match_value(const struct nudge_match *found);

// Returns the type of the value, one of `nudge_value_type`.
uint32_t nudge_match_value_type(const struct nudge_match *found);

// Returns the variant of the key: twelve hex digits, or an empty text when the hint applies everywhere. The text lives
// as long as the match.
struct nudge_str nudge_match_variant(const struct nudge_match *found);

// Returns 1 when the value is a secret, which must not be shown, and otherwise 0.
uint32_t nudge_match_is_secret(const struct nudge_match *found);

// Returns the version of the hint: the number of times that it was set.
uint64_t nudge_match_version(const struct nudge_match *found);

// Returns the score, from 0 to 1. A session returns only four decimals.
double nudge_match_score(const struct nudge_match *found);

// Returns the terms of the score; all are 0 for NULL.
struct nudge_parts nudge_match_parts(const struct nudge_match *found);

// Returns the number of reasons for the choice of this hint.
size_t nudge_match_reason_count(const struct nudge_match *found);

// Returns a reason, such as `branch=dev allowed`. The first has position 0; after the last one the result is "not
// given". The text lives as long as the match.
struct nudge_str nudge_match_reason(const struct nudge_match *found,
                                    size_t position);

// Returns the whole match as JSON, as `nudge.get_hint` does: `{"hint": ..., "match_explain": ...}`. The text lives as
// long as the match.
struct nudge_str nudge_match_json(const struct nudge_match *found);

// Frees a match. Ignores NULL.
void nudge_match_free(struct nudge_match *found);

// Returns the text of a C string that ends in NUL; "not given" for NULL.
struct nudge_str nudge_cstr(const char *text);

// Returns the whole result as compact JSON. The text lives as long as the result.
struct nudge_str nudge_result_json(const struct nudge_result *result);

// Reads the string at a JSON pointer (RFC 6901) such as `/hints/0/hint/key`. The text lives as long as the result.
//
// Fails with `NUDGE_E_NOT_FOUND` when there is no value, and with `NUDGE_E_INVALID` when the value is no string.
nudge_status nudge_result_text(const struct nudge_result *result,
                               struct nudge_str pointer,
                               struct nudge_str *out,
                               struct nudge_error **error);

// Reads the number at a JSON pointer as a double.
//
// Fails with `NUDGE_E_NOT_FOUND` when there is no value, and with `NUDGE_E_INVALID` when the value is no number.
nudge_status nudge_result_number(const struct nudge_result *result,
                                 struct nudge_str pointer,
                                 double *out,
                                 struct nudge_error **error);

// Reads the number of elements of the array at a JSON pointer.
//
// Fails with `NUDGE_E_NOT_FOUND` when there is no value, and with `NUDGE_E_INVALID` when the value is no array.
nudge_status nudge_result_count(const struct nudge_result *result,
                                struct nudge_str pointer,
                                size_t *out,
                                struct nudge_error **error);

// Frees a result. Ignores NULL.
void nudge_result_free(struct nudge_result *result);

// Makes an empty store in this process. With NULL as `config`, the store has the defaults.
nudge_status nudge_store_new(const struct nudge_config *config,
                             struct nudge_store **out,
                             struct nudge_error **error);

// Opens the running session of a runtime directory: of `runtime_dir`, or else of `NUDGE_RUNTIME_DIR`, or else of the
// default directory. `client` is the caller's name for users who later ask which client changed a hint; it may be left
// out.
//
// Calls on such a store block. When a server ends, they continue with the next server. A forked child process opens
// its own connections. Fails with `NUDGE_E_UNAVAILABLE` when no `nudge serve` runs there.
nudge_status nudge_connect(struct nudge_str runtime_dir,
                           struct nudge_str client,
                           struct nudge_store **out,
                           struct nudge_error **error);

// Frees a store. Ignores NULL. Views and matches that were made with the store stay valid.
void nudge_store_free(struct nudge_store *store);

// Calls any method by its name, such as `nudge.query`. `nudge_method_name` lists the names.
//
// `params` is a JSON object; "not given" means `{}`. If `context` is not NULL, it becomes the `context` of the params,
// which then must not contain another. `out` may be NULL when the caller does not need the result.
nudge_status nudge_call(const struct nudge_store *store,
                        struct nudge_str method,
                        struct nudge_str params,
                        const struct nudge_context *context,
                        struct nudge_result **out,
                        struct nudge_error **error);

// Returns the number of methods.
size_t nudge_method_count(void);

// Returns the name of a method, such as `nudge.get_hint`. The first has position 0; after the last one the result is
// "not given". The text is static.
struct nudge_str nudge_method_name(size_t position);

// Stores a hint, or updates the variant with an equal scope.
//
// `out` may be NULL. The result is that of `nudge.set_hint`: `{"hint", "variants"}`, and `"previous"` if the call
// replaced another value. The call can fail, in this order, with `NUDGE_E_INVALID`, `NUDGE_E_SCOPE_INVALID`,
// `NUDGE_E_SECRET_REJECTED`, `NUDGE_E_NOT_FOUND` (unknown `variant`), `NUDGE_E_CONFLICT` or `NUDGE_E_QUOTA`.
nudge_status nudge_set(const struct nudge_store *store,
                       const struct nudge_set_params *params,
                       struct nudge_result **out,
                       struct nudge_error **error);

// Counts a use of a hint, so that the hint ranks higher later.
//
// `out` may be NULL. The result is that of `nudge.bump`: `{"hint"}`. Fails with `NUDGE_E_NOT_FOUND`, and with
// `NUDGE_E_INVALID` when the key has several variants and neither `context` nor `variant` is given.
nudge_status nudge_bump(const struct nudge_store *store,
                        const struct nudge_bump_params *params,
                        struct nudge_result **out,
                        struct nudge_error **error);

// Deletes a hint, one of its variants, or all its variants.
//
// `out` may be NULL. The result is that of `nudge.delete_hint`: `{"deleted", "previous", "deleted_count"}`. Fails with
// `NUDGE_E_NOT_FOUND`, and with `NUDGE_E_INVALID` when the key has several variants and neither `variant` nor `all` is
// given.
nudge_status nudge_delete(const struct nudge_store *store,
                          const struct nudge_delete_params *params,
                          struct nudge_result **out,
                          struct nudge_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NUDGE_H */
