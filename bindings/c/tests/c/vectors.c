/*
 * Makes the calls of the test vectors (tests/src/drivers/c.rs) through nudge.h.
 *
 * A message is a line "VERB COUNT", then COUNT fields: for each a line "NAME LENGTH", the bytes, and a line end.
 * Answers have the same form, with the status instead of a verb. There are two stores, 0 and 1, so that a call can be
 * made in two ways and the answers compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nudge.h>

#define MOST 4096

typedef struct {
  char name[32];
  nudge_str value;
} field;

static field fields[MOST];
static size_t count;
static nudge_store *stores[2];

static void fail(const char *why) {
  fprintf(stderr, "vectors: %s\n", why);
  exit(3);
}

static int next_message(char *verb) {
  for (size_t at = 0; at < count; at++) free((char *)fields[at].value.ptr);
  if (scanf("%31s %zu", verb, &count) != 2) return 0;
  if (count > MOST) fail("too many fields");
  for (size_t at = 0; at < count; at++) {
    size_t len;
    if (scanf("%31s %zu", fields[at].name, &len) != 2 || getchar() != '\n') fail("no field");
    /* The memory has exactly this length, so that valgrind and ASan see a read beyond it. */
    char *text = malloc(len ? len : 1);
    if (!text || fread(text, 1, len, stdin) != len) fail("no bytes");
    fields[at].value = (nudge_str){text, len};
  }
  return 1;
}

static nudge_str text(const char *name) {
  for (size_t at = 0; at < count; at++)
    if (!strcmp(fields[at].name, name)) return fields[at].value;
  return (nudge_str){NULL, 0};
}

static double number(const char *name) {
  char digits[64] = "0";
  nudge_str value = text(name);
  if (value.len < sizeof digits && value.len) {
    memcpy(digits, value.ptr, value.len);
    digits[value.len] = 0;
  }
  return strtod(digits, NULL);
}

static uint32_t small(const char *name) { return (uint32_t)number(name); }

/* Returns all fields of a name; the caller has room for MOST. */
static nudge_strs texts(const char *name, nudge_str *room) {
  size_t len = 0;
  for (size_t at = 0; at < count; at++)
    if (!strcmp(fields[at].name, name)) room[len++] = fields[at].value;
  return (nudge_strs){len ? room : NULL, len};
}

/* Returns all pairs of a name: NAME.name, then NAME.value or nothing. */
static nudge_pairs pairs(const char *name, nudge_pair *room) {
  size_t len = 0, long_name = strlen(name);
  for (size_t at = 0; at < count; at++) {
    if (strncmp(fields[at].name, name, long_name)) continue;
    if (!strcmp(fields[at].name + long_name, ".name")) room[len++] = (nudge_pair){fields[at].value, {NULL, 0}};
    else if (len && !strcmp(fields[at].name + long_name, ".value")) room[len - 1].value = fields[at].value;
  }
  return (nudge_pairs){len ? room : NULL, len};
}

static void say(const char *name, nudge_str value) {
  printf("%s %zu\n", name, value.len);
  fwrite(value.ptr, 1, value.len, stdout);
  printf("\n");
}

static void say_error(nudge_status status, nudge_error *error) {
  if (nudge_error_code(error) != status) fail("the error has another code than the call");
  printf("%d 3\n", status);
  say("reason", nudge_error_reason(error));
  say("message", nudge_error_message(error));
  say("data", nudge_error_data(error));
  nudge_error_free(error);
}

static void say_result(nudge_status status, nudge_result *result, nudge_error *error) {
  if (status != NUDGE_OK) {
    if (result) fail("an output of a refused call");
    say_error(status, error);
    return;
  }
  if (error) fail("an error of a call that succeeded");
  printf("0 1\n");
  say("json", nudge_result_json(result));
  nudge_result_free(result);
}

static nudge_status context(nudge_context **out, nudge_error **error) {
  static nudge_pair env[MOST];
  static nudge_str files[MOST];
  nudge_context_params params = {
      .struct_size = sizeof params,
      .cwd = text("cwd"),
      .repo = text("repo"),
      .branch = text("branch"),
      .os = small("os"),
      .env = pairs("env", env),
      .files_open = texts("file_open", files),
  };
  return nudge_context_new(&params, out, error);
}

static int same(nudge_str a, nudge_str b) { return a.len == b.len && !memcmp(a.ptr, b.ptr, a.len); }

static void say_match(const nudge_match *found) {
  size_t reasons = nudge_match_reason_count(found);
  nudge_parts parts = nudge_match_parts(found);
  char digits[64];
  printf("0 %zu\n", reasons + 6);
  say("json", nudge_match_json(found));
  say("value", nudge_match_value(found));
  say("variant", nudge_match_variant(found));
  snprintf(digits, sizeof digits, "%.4f", nudge_match_score(found));
  say("score", nudge_cstr(digits));
  snprintf(digits, sizeof digits, "%.4f", parts.frecency + parts.priority + parts.confidence +
                                              parts.scope_specificity + parts.recency + parts.files_open);
  say("sum", nudge_cstr(digits));
  snprintf(digits, sizeof digits, "%llu", (unsigned long long)nudge_match_version(found));
  say("version", nudge_cstr(digits));
  for (size_t at = 0; at < reasons; at++) say("reason", nudge_match_reason(found, at));
}

/* Calls nudge_get and a view, whose answers must be equal. */
static void get(const nudge_store *store) {
  nudge_error *error = NULL;
  nudge_context *here = NULL;
  nudge_status status = context(&here, &error);
  if (status != NUDGE_OK) {
    say_error(status, error);
    return;
  }
  nudge_get_params params = {sizeof params, text("component"), text("key"), here};
  nudge_match *found = NULL, *seen = NULL;
  nudge_view *view = NULL;
  status = nudge_get(store, &params, &found, &error);
  if (nudge_view_new(store, here, &view, NULL) != NUDGE_OK) fail("no view");
  if (nudge_view_get(view, params.component, params.key, &seen, NULL) != status) fail("a view answers otherwise");
  nudge_view_free(view);
  nudge_context_free(here);
  if (status != NUDGE_OK) {
    say_error(status, error);
    return;
  }
  if (!same(nudge_match_json(found), nudge_match_json(seen))) fail("a view finds something else");
  say_match(found);
  nudge_match_free(found);
  nudge_match_free(seen);
}

static void set(const nudge_store *store) {
  static nudge_str cwd[MOST], repo[MOST], branch[MOST], required[MOST], tags[MOST];
  static nudge_pair match[MOST], defaults[MOST];
  nudge_scope scope = {
      .struct_size = sizeof scope,
      .cwd_glob = texts("cwd_glob", cwd),
      .repo = texts("scope_repo", repo),
      .branch = texts("scope_branch", branch),
      .os = small("scope_os"),
      .env_required = texts("env_required", required),
      .env_match = pairs("env_match", match),
  };
  double confidence = number("confidence");
  uint64_t version = (uint64_t)number("if_match_version");
  nudge_set_params params = {
      .struct_size = sizeof params,
      .component = text("component"),
      .key = text("key"),
      .value = text("value"),
      .value_type = small("value_type"),
      .shell = small("shell"),
      .path_os = small("path_os"),
      .format = small("format"),
      .defaults = pairs("defaults", defaults),
      .reason = text("reason"),
      .tags = texts("tag", tags),
      .priority = small("priority"),
      .sensitivity = small("sensitivity"),
      .confidence = text("confidence").ptr ? &confidence : NULL,
      .ttl = text("ttl"),
      .scope = small("scoped") ? &scope : NULL,
      .added_by = text("added_by"),
      .source = small("source"),
      .allow_secret = small("allow_secret"),
      .if_match_version = text("if_match_version").ptr ? &version : NULL,
      .variant = text("variant"),
  };
  nudge_result *result = NULL;
  nudge_error *error = NULL;
  nudge_status status = nudge_set(store, &params, &result, &error);
  say_result(status, result, error);
}

static void bump(const nudge_store *store) {
  nudge_error *error = NULL;
  nudge_result *result = NULL;
  nudge_context *here = NULL;
  nudge_status status = context(&here, &error);
  if (status != NUDGE_OK) {
    say_error(status, error);
    return;
  }
  nudge_bump_params params = {
      .struct_size = sizeof params,
      .component = text("component"),
      .key = text("key"),
      .context = here,
      .variant = text("variant"),
      .delta = (uint64_t)number("delta"),
  };
  status = nudge_bump(store, &params, &result, &error);
  nudge_context_free(here);
  say_result(status, result, error);
}

static void delete_hint(const nudge_store *store) {
  nudge_error *error = NULL;
  nudge_result *result = NULL;
  nudge_delete_params params = {
      .struct_size = sizeof params,
      .component = text("component"),
      .key = text("key"),
      .variant = text("variant"),
      .all = small("all"),
  };
  nudge_status status = nudge_delete(store, &params, &result, &error);
  say_result(status, result, error);
}

static void call(const nudge_store *store) {
  nudge_error *error = NULL;
  nudge_result *result = NULL;
  nudge_status status = nudge_call(store, text("method"), text("params"), NULL, &result, &error);
  say_result(status, result, error);
}

static void start(void) {
  nudge_config config = {
      .struct_size = sizeof config,
      .max_components = (uint64_t)number("max_components"),
      .max_hints_per_component = (uint64_t)number("max_hints_per_component"),
      .max_hints = (uint64_t)number("max_hints"),
      .max_bytes = (uint64_t)number("max_bytes"),
      .suggest_max = (uint64_t)number("suggest_max"),
      .default_ttl = text("default_ttl"),
      .secret_guard = small("secret_guard"),
  };
  for (int at = 0; at < 2; at++) {
    nudge_store_free(stores[at]);
    stores[at] = NULL;
    if (nudge_store_new(&config, &stores[at], NULL) != NUDGE_OK) fail("no store");
  }
  printf("0 0\n");
}

/* Connects both stores to one session. */
static void connect_session(void) {
  for (int at = 0; at < 2; at++) {
    nudge_store_free(stores[at]);
    stores[at] = NULL;
    if (nudge_connect(text("runtime_dir"), nudge_cstr("vectors"), &stores[at], NULL) != NUDGE_OK) fail("no session");
  }
  printf("0 0\n");
}

int main(void) {
  char verb[32];
  if (nudge_abi_version() != NUDGE_ABI_VERSION) fail("another library than the header's");
  while (next_message(verb)) {
    const nudge_store *store = stores[small("store") & 1];
    if (!strcmp(verb, "start")) start();
    else if (!strcmp(verb, "connect")) connect_session();
    else if (!strcmp(verb, "call")) call(store);
    else if (!strcmp(verb, "get")) get(store);
    else if (!strcmp(verb, "set")) set(store);
    else if (!strcmp(verb, "bump")) bump(store);
    else if (!strcmp(verb, "delete")) delete_hint(store);
    else fail("no such verb");
    fflush(stdout);
  }
  nudge_store_free(stores[0]);
  nudge_store_free(stores[1]);
  return 0;
}
