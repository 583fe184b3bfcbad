/* Checks the promises of nudge.h: wrong input of every kind is refused, changes nothing, and writes nothing. */
#include <math.h>

#include "kit.h"

static const nudge_str NONE = {NULL, 0};
static nudge_store *store;

/* The content of outputs before a call, to see that the call wrote nothing. */
#define UNTOUCHED ((void *)&store)

static nudge_set_params plain_set(void) {
  return (nudge_set_params){
      .struct_size = sizeof(nudge_set_params), .component = S("api"), .key = S("build"), .value = S("make")};
}

static int set_refused(const nudge_set_params *params, nudge_status expected, const char *part) {
  nudge_error *error = NULL;
  nudge_result *result = UNTOUCHED;
  nudge_status status = nudge_set(store, params, &result, &error);
  return result == UNTOUCHED && refused(status, &error, expected, part);
}

static size_t stored(void) {
  nudge_result *result = NULL;
  double hints = -1;
  CHECK(nudge_call(store, S("nudge.status"), NONE, NULL, &result, NULL) == NUDGE_OK);
  CHECK(nudge_result_number(result, S("/hints"), &hints, NULL) == NUDGE_OK);
  nudge_result_free(result);
  return (size_t)hints;
}

static void null_is_seen_everywhere(void) {
  nudge_error *error = NULL;
  nudge_match *found = UNTOUCHED;
  nudge_view *view = UNTOUCHED;
  nudge_context *context = UNTOUCHED;
  nudge_result *result = UNTOUCHED;
  nudge_store *other = UNTOUCHED;
  nudge_get_params get = {sizeof get, S("api"), S("build"), NULL};
  nudge_set_params set = plain_set();
  nudge_bump_params bump = {.struct_size = sizeof bump, .component = S("api"), .key = S("build")};
  nudge_delete_params delete = {.struct_size = sizeof delete, .component = S("api"), .key = S("build")};
  nudge_context_params place = {.struct_size = sizeof place};

#define REFUSED(call, part) CHECK(refused(call, &error, NUDGE_E_INVALID, part))
  REFUSED(nudge_store_new(NULL, NULL, &error), "`out` is NULL");
  REFUSED(nudge_connect(NONE, NONE, NULL, &error), "`out` is NULL");
  REFUSED(nudge_call(NULL, S("nudge.status"), NONE, NULL, &result, &error), "store is NULL");
  REFUSED(nudge_call(store, NONE, NONE, NULL, &result, &error), "`method` is NULL");
  REFUSED(nudge_get(NULL, &get, &found, &error), "store is NULL");
  REFUSED(nudge_get(store, NULL, &found, &error), "nudge_get_params is NULL");
  REFUSED(nudge_get(store, &get, NULL, &error), "`out` is NULL");
  get.component = NONE;
  REFUSED(nudge_get(store, &get, &found, &error), "`component` is NULL");
  get.component = S("api");
  get.key = NONE;
  REFUSED(nudge_get(store, &get, &found, &error), "`key` is NULL");
  REFUSED(nudge_set(NULL, &set, &result, &error), "store is NULL");
  REFUSED(nudge_set(store, NULL, &result, &error), "nudge_set_params is NULL");
  REFUSED(nudge_bump(NULL, &bump, &result, &error), "store is NULL");
  REFUSED(nudge_bump(store, NULL, &result, &error), "nudge_bump_params is NULL");
  REFUSED(nudge_delete(NULL, &delete, &result, &error), "store is NULL");
  REFUSED(nudge_delete(store, NULL, &result, &error), "nudge_delete_params is NULL");
  REFUSED(nudge_context_new(NULL, &context, &error), "nudge_context_params is NULL");
  REFUSED(nudge_context_new(&place, NULL, &error), "`out` is NULL");
  REFUSED(nudge_context_detect(NONE, (nudge_strs){NULL, 0}, NULL, &error), "`out` is NULL");
  REFUSED(nudge_context_detect(NONE, (nudge_strs){NULL, 2}, &context, &error), "`files_open` is NULL");
  REFUSED(nudge_view_new(NULL, NULL, &view, &error), "store is NULL");
  REFUSED(nudge_view_new(store, NULL, NULL, &error), "`out` is NULL");
  REFUSED(nudge_view_get(NULL, S("a"), S("b"), &found, &error), "view is NULL");
  CHECK(nudge_view_new(store, NULL, &view, NULL) == NUDGE_OK);
  REFUSED(nudge_view_get(view, NONE, S("b"), &found, &error), "`component` is NULL");
  REFUSED(nudge_view_get(view, S("a"), NONE, &found, &error), "`key` is NULL");
  REFUSED(nudge_view_get(view, S("a"), S("b"), NULL, &error), "`out` is NULL");
  nudge_view_free(view);
  nudge_str text = NONE;
  double number = 7;
  size_t count = 7;
  REFUSED(nudge_result_text(NULL, S(""), &text, &error), "result is NULL");
  REFUSED(nudge_result_number(NULL, S(""), &number, &error), "result is NULL");
  REFUSED(nudge_result_count(NULL, S(""), &count, &error), "result is NULL");
  nudge_result *status = NULL;
  CHECK(nudge_call(store, S("nudge.status"), NONE, NULL, &status, NULL) == NUDGE_OK);
  REFUSED(nudge_result_text(status, NONE, &text, &error), "`pointer` is NULL");
  REFUSED(nudge_result_text(status, S("/role"), NULL, &error), "`out` is NULL");
  REFUSED(nudge_result_number(status, S("/hints"), NULL, &error), "`out` is NULL");
  REFUSED(nudge_result_count(status, S("/hints"), NULL, &error), "`out` is NULL");
  REFUSED(nudge_result_count(status, S("/hints"), &count, &error), "no array");
  REFUSED(nudge_result_number(status, S("/version"), &number, &error), "no number");
  REFUSED(nudge_result_text(status, S("/hints"), &text, &error), "no string");
  CHECK(refused(nudge_result_text(status, S("/nowhere"), &text, &error), &error, NUDGE_E_NOT_FOUND, "nothing"));
  nudge_result_free(status);
  CHECK(text.ptr == NULL && number == 7 && count == 7);
  CHECK(found == UNTOUCHED && context == UNTOUCHED && result == UNTOUCHED && other == UNTOUCHED);

  /* Without an output for the error, the status alone tells the refusal. */
  CHECK(nudge_get(NULL, NULL, NULL, NULL) == NUDGE_E_INVALID);
  CHECK(nudge_set(store, NULL, NULL, NULL) == NUDGE_E_INVALID);
}

static void accessors_take_null(void) {
  nudge_parts parts = nudge_match_parts(NULL);
  CHECK(parts.frecency == 0 && parts.recency == 0 && parts.files_open == 0);
  CHECK(!nudge_match_value(NULL).ptr && !nudge_match_variant(NULL).ptr && !nudge_match_json(NULL).ptr);
  CHECK(!nudge_match_reason(NULL, 0).ptr && nudge_match_reason_count(NULL) == 0 && nudge_match_score(NULL) == 0);
  CHECK(nudge_match_is_secret(NULL) == 0);
  CHECK(nudge_match_version(NULL) == 0 && nudge_match_value_type(NULL) == NUDGE_VALUE_TEXT);
  CHECK(!nudge_error_message(NULL).ptr && !nudge_error_reason(NULL).ptr && !nudge_error_data(NULL).ptr);
  CHECK(nudge_error_code(NULL) == NUDGE_OK && !nudge_result_json(NULL).ptr && !nudge_cstr(NULL).ptr);
  nudge_match_free(NULL);
  nudge_view_free(NULL);
  nudge_context_free(NULL);
  nudge_result_free(NULL);
  nudge_error_free(NULL);
  nudge_store_free(NULL);
}

static void texts_are_checked(void) {
  nudge_set_params set = plain_set();
  set.component = (nudge_str){NULL, 3};
  CHECK(set_refused(&set, NUDGE_E_INVALID, "NULL and yet has a length"));
  static const char *const broken[] = {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80"};
  for (size_t at = 0; at < sizeof broken / sizeof *broken; at++) {
    nudge_str text = S(broken[at]);
    nudge_strs one = {&text, 1};
    nudge_pair pair = {text, S("x")}, other = {S("x"), text};
    nudge_scope scope = {.struct_size = sizeof scope};
    nudge_str *const plain[] = {&set.component, &set.key,   &set.value,  &set.reason,
                                &set.ttl,       &set.added_by, &set.variant};
    for (size_t field = 0; field < sizeof plain / sizeof *plain; field++) {
      set = plain_set();
      *plain[field] = text;
      CHECK(set_refused(&set, NUDGE_E_INVALID, "is not UTF-8"));
    }
    set = plain_set();
    set.tags = one;
    CHECK(set_refused(&set, NUDGE_E_INVALID, "`tags` is not UTF-8"));
    set = plain_set();
    set.scope = &scope;
    nudge_strs *const lists[] = {&scope.cwd_glob, &scope.repo, &scope.branch, &scope.env_required};
    for (size_t list = 0; list < 4; list++) {
      *lists[list] = one;
      CHECK(set_refused(&set, NUDGE_E_INVALID, "is not UTF-8"));
      *lists[list] = (nudge_strs){NULL, 0};
    }
    scope.env_match = (nudge_pairs){&pair, 1};
    CHECK(set_refused(&set, NUDGE_E_INVALID, "is not UTF-8"));
    scope.env_match = (nudge_pairs){&other, 1};
    CHECK(set_refused(&set, NUDGE_E_INVALID, "is not UTF-8"));
    nudge_error *error = NULL;
    nudge_context *context = NULL;
    nudge_context_params place = {.struct_size = sizeof place, .branch = text};
    CHECK(refused(nudge_context_new(&place, &context, &error), &error, NUDGE_E_INVALID, "is not UTF-8"));
    CHECK(refused(nudge_context_detect(text, (nudge_strs){NULL, 0}, &context, &error), &error, NUDGE_E_INVALID,
                  "is not UTF-8"));
    CHECK(refused(nudge_call(store, text, NONE, NULL, NULL, &error), &error, NUDGE_E_INVALID, "is not UTF-8"));
    CHECK(refused(nudge_call(store, S("nudge.status"), text, NULL, NULL, &error), &error, NUDGE_E_INVALID,
                  "is not UTF-8"));
    CHECK(refused(nudge_connect(text, NONE, &(nudge_store *){NULL}, &error), &error, NUDGE_E_INVALID, "is not UTF-8"));
  }
  /* A NUL byte is an ordinary control character: names refuse it, and other texts keep it. */
  set = plain_set();
  set.component = (nudge_str){"a\0b", 3};
  CHECK(set_refused(&set, NUDGE_E_INVALID, "control characters"));
  set = plain_set();
  set.key = S("nul");
  set.value = (nudge_str){"a\0b", 3};
  CHECK(nudge_set(store, &set, NULL, NULL) == NUDGE_OK);
  nudge_match *found = NULL;
  nudge_get_params get = {sizeof get, S("api"), S("nul"), NULL};
  CHECK(nudge_get(store, &get, &found, NULL) == NUDGE_OK);
  CHECK(nudge_match_value(found).len == 3 && !memcmp(nudge_match_value(found).ptr, "a\0b", 3));
  nudge_match_free(found);
  /* No text can have such a length. */
  set.value.len = SIZE_MAX;
  CHECK(set_refused(&set, NUDGE_E_INVALID, "length that nothing has"));
  set = plain_set();
  nudge_str tag = S("t");
  set.tags = (nudge_strs){&tag, SIZE_MAX / 4};
  CHECK(set_refused(&set, NUDGE_E_INVALID, "length that nothing has"));
  set.tags = (nudge_strs){(const nudge_str *)((const char *)&tag + 1), 1};
  CHECK(set_refused(&set, NUDGE_E_INVALID, "not aligned"));
  /* The text is too long and otherwise valid. */
  size_t size = (64 << 10) + 1;
  char *big = malloc(size);
  CHECK(big);
  memset(big, 'x', size);
  set = plain_set();
  set.value = (nudge_str){big, size};
  CHECK(set_refused(&set, NUDGE_E_INVALID, "64 KiB"));
  set = plain_set();
  set.key = (nudge_str){big, 257};
  CHECK(set_refused(&set, NUDGE_E_INVALID, "256 bytes"));
  free(big);
  set.key = (nudge_str){"", 0};
  CHECK(set_refused(&set, NUDGE_E_INVALID, "1 to 256 bytes"));
}

static void numbers_are_checked(void) {
  nudge_set_params set;
  uint32_t *const choices[] = {&set.value_type, &set.shell,  &set.path_os,     &set.format,
                               &set.sensitivity, &set.source, &set.allow_secret};
  for (size_t at = 0; at < sizeof choices / sizeof *choices; at++) {
    const uint32_t wrong[] = {77, 8, UINT32_MAX, 0x80000000u};
    for (size_t value = 0; value < 4; value++) {
      set = plain_set();
      *choices[at] = wrong[value];
      CHECK(set_refused(&set, NUDGE_E_INVALID, "nudge.h lists"));
    }
  }
  const double confidences[] = {NAN, INFINITY, -INFINITY, -0.1, 1.1, 1e300};
  for (size_t at = 0; at < 6; at++) {
    set = plain_set();
    set.confidence = &confidences[at];
    CHECK(set_refused(&set, NUDGE_E_INVALID, "confidence"));
  }
  set = plain_set();
  set.priority = 11;
  CHECK(set_refused(&set, NUDGE_E_INVALID, "priority"));
  set.priority = UINT32_MAX;
  CHECK(set_refused(&set, NUDGE_E_INVALID, "priority"));
  set = plain_set();
  nudge_scope scope = {.struct_size = sizeof scope, .os = 8};
  set.scope = &scope;
  CHECK(set_refused(&set, NUDGE_E_INVALID, "`os`"));
  scope.os = 0;
  scope.reserved = 1;
  CHECK(set_refused(&set, NUDGE_E_INVALID, "`reserved`"));
  nudge_error *error = NULL;
  nudge_context *context = UNTOUCHED;
  nudge_context_params place = {.struct_size = sizeof place, .os = NUDGE_OS_LINUX | NUDGE_OS_WINDOWS};
  REFUSED(nudge_context_new(&place, &context, &error), "`os`");
  place.os = 64;
  REFUSED(nudge_context_new(&place, &context, &error), "`os`");
  place.os = 0;
  place.reserved = 2;
  REFUSED(nudge_context_new(&place, &context, &error), "`reserved`");
  CHECK(context == UNTOUCHED);
  nudge_bump_params bump = {
      .struct_size = sizeof bump, .component = S("api"), .key = S("nul"), .delta = UINT64_MAX};
  REFUSED(nudge_bump(store, &bump, NULL, &error), "delta");
  nudge_delete_params delete = {.struct_size = sizeof delete, .component = S("api"), .key = S("nul"), .all = 2};
  REFUSED(nudge_delete(store, &delete, NULL, &error), "`all`");
  delete.all = 0;
  delete.reserved = 1;
  REFUSED(nudge_delete(store, &delete, NULL, &error), "`reserved`");
  nudge_store *other = UNTOUCHED;
  nudge_config config = {.struct_size = sizeof config, .secret_guard = 3};
  REFUSED(nudge_store_new(&config, &other, &error), "`secret_guard`");
  config.secret_guard = 0;
  config.from_env = 9;
  REFUSED(nudge_store_new(&config, &other, &error), "`from_env`");
  config.from_env = 0;
  config.default_ttl = S("forever");
  REFUSED(nudge_store_new(&config, &other, &error), "PT2H");
  CHECK(other == UNTOUCHED);
}

static void structs_grow(void) {
  nudge_set_params set = plain_set();
  const size_t sizes[] = {0, 1, sizeof set - 1, 4097, SIZE_MAX};
  for (size_t at = 0; at < 5; at++) {
    set.struct_size = sizes[at];
    CHECK(set_refused(&set, NUDGE_E_INVALID, "`struct_size` of the nudge_set_params"));
  }
  /* A caller of a later version: the bytes beyond our fields must be zero. */
  struct {
    nudge_get_params known;
    nudge_str variant;
  } later = {{sizeof later, S("api"), S("nul"), NULL}, {NULL, 0}};
  nudge_match *found = NULL;
  nudge_error *error = NULL;
  CHECK(nudge_get(store, &later.known, &found, NULL) == NUDGE_OK);
  nudge_match_free(found);
  found = UNTOUCHED;
  later.variant = S("x");
  REFUSED(nudge_get(store, &later.known, &found, &error), "upgrade");
  CHECK(found == UNTOUCHED);
}

static void calls_are_checked(void) {
  nudge_error *error = NULL;
  nudge_result *result = UNTOUCHED;
  nudge_context *context = NULL;
  nudge_context_params place = {.struct_size = sizeof place, .branch = S("dev")};
  CHECK(nudge_context_new(&place, &context, NULL) == NUDGE_OK);
  REFUSED(nudge_call(store, S("nudge.query"), S("{"), NULL, &result, &error), "line 1, column 1");
  REFUSED(nudge_call(store, S("nudge.query"), S(""), NULL, &result, &error), "no JSON");
  REFUSED(nudge_call(store, S("nudge.query"), S("{} {}"), NULL, &result, &error), "no JSON");
  REFUSED(nudge_call(store, S("nudge.query"), S("{\"context\":{}}"), context, &result, &error), "once");
  REFUSED(nudge_call(store, S("nudge.status"), NONE, context, &result, &error), "context");
  CHECK(refused(nudge_call(store, S("nudge.query"), S("[]"), context, &result, &error), &error,
                NUDGE_E_PARAMS_NOT_OBJECT, "object"));
  CHECK(refused(nudge_call(store, S("nudge.query"), S("7"), NULL, &result, &error), &error, NUDGE_E_PARAMS_NOT_OBJECT,
                "object"));
  CHECK(refused(nudge_call(store, S("query"), NONE, NULL, &result, &error), &error, NUDGE_E_UNKNOWN_METHOD, "method"));
  size_t deep = 1000000;
  char *nested = malloc(deep);
  CHECK(nested);
  memset(nested, '[', deep);
  REFUSED(nudge_call(store, S("nudge.query"), (nudge_str){nested, deep}, NULL, &result, &error), "JSON");
  free(nested);
  CHECK(result == UNTOUCHED);
  nudge_context_free(context);
  /* A call without params counts as one with an empty object. */
  CHECK(nudge_call(store, S("nudge.list_components"), NONE, NULL, &result, NULL) == NUDGE_OK);
  size_t components = 0;
  nudge_str name = NONE;
  CHECK(nudge_result_count(result, S("/components"), &components, NULL) == NUDGE_OK && components == 1);
  CHECK(nudge_result_text(result, S("/components/0/name"), &name, NULL) == NUDGE_OK && is(name, "api"));
  nudge_result_free(result);
}

static void secrets_stay_out_of_errors(void) {
  /* The text is joined here, so that no file holds a text that looks like a credential. */
  char key[64];
  snprintf(key, sizeof key, "%s%s%s", "AKIA", "2E0A8F3B", "244C9986");
  nudge_set_params set = plain_set();
  nudge_str fields[] = {S(key)};
  for (int at = 0; at < 3; at++) {
    set = plain_set();
    if (at == 0) set.value = fields[0];
    if (at == 1) set.reason = fields[0];
    if (at == 2) set.tags = (nudge_strs){fields, 1};
    nudge_error *error = NULL;
    CHECK(nudge_set(store, &set, NULL, &error) == NUDGE_E_SECRET_REJECTED);
    CHECK(!holds(nudge_error_message(error), key) && !holds(nudge_error_data(error), key));
    CHECK(is(nudge_error_reason(error), "E_SECRET_REJECTED") && holds(nudge_error_data(error), "\"rule\""));
    nudge_error_free(error);
  }
  /* The type is unknown, and its name looks like a secret. */
  char params[128];
  snprintf(params, sizeof params, "{\"component\":\"a\",\"key\":\"b\",\"value\":\"c\",\"%s\":1}", key);
  nudge_error *error = NULL;
  CHECK(nudge_call(store, S("nudge.set_hint"), S(params), NULL, NULL, &error) == NUDGE_E_INVALID);
  CHECK(!holds(nudge_error_message(error), key));
  nudge_error_free(error);
  set = plain_set();
  set.key = S("token");
  set.value = fields[0];
  set.sensitivity = NUDGE_SENSITIVITY_SECRET;
  nudge_result *result = NULL;
  CHECK(nudge_set(store, &set, &result, NULL) == NUDGE_OK);
  CHECK(holds(nudge_result_json(result), "[secret]") && !holds(nudge_result_json(result), key));
  nudge_result_free(result);
  nudge_get_params get = {sizeof get, set.component, set.key, NULL};
  nudge_match *found = NULL;
  CHECK(nudge_get(store, &get, &found, NULL) == NUDGE_OK && nudge_match_is_secret(found) == 1);
  nudge_match_free(found);
}

static void the_library_tells_of_itself(void) {
  CHECK(nudge_abi_version() == NUDGE_ABI_VERSION);
  CHECK(nudge_version().len >= 5);
  CHECK(nudge_method_count() > 10 && is(nudge_method_name(0), "nudge.get_hint"));
  CHECK(!nudge_method_name(nudge_method_count()).ptr && !nudge_method_name(SIZE_MAX).ptr);
}

/* A pointer that is not aligned for its type. */
#define OFF(pointer) ((void *)((char *)(pointer) + 1))

static void what_is_not_aligned_is_seen(void) {
  nudge_error *error = NULL;
  nudge_get_params get = {sizeof get, S("api"), S("kept"), NULL};
  nudge_set_params set = plain_set();
  nudge_bump_params bump = {.struct_size = sizeof bump, .component = S("api"), .key = S("kept")};
  nudge_delete_params delete = {.struct_size = sizeof delete, .component = S("api"), .key = S("kept")};
  nudge_context_params place = {.struct_size = sizeof place};
  nudge_config config = {.struct_size = sizeof config};
  nudge_context *context = NULL;
  nudge_view *view = NULL;
  nudge_match *found = NULL;
  nudge_result *result = NULL;
  size_t before = stored();
  /* Memory for a pointer at an odd address, to see that the call writes nothing there. */
  union {
    void *pointer;
    double number;
    char bytes[2 * sizeof(nudge_str)];
  } room, as_it_was;
  memset(&room, 0x5a, sizeof room);
  as_it_was = room;
  void *odd = OFF(&room);

  CHECK(nudge_context_new(&place, &context, NULL) == NUDGE_OK);
  CHECK(nudge_view_new(store, context, &view, NULL) == NUDGE_OK);
  CHECK(nudge_get(store, &get, &found, NULL) == NUDGE_OK);
  CHECK(nudge_call(store, S("nudge.status"), NONE, NULL, &result, NULL) == NUDGE_OK);

  /* Pointers for outputs. */
  REFUSED(nudge_store_new(NULL, odd, &error), "`out` is not aligned");
  REFUSED(nudge_connect(NONE, NONE, odd, &error), "`out` is not aligned");
  REFUSED(nudge_context_new(&place, odd, &error), "`out` is not aligned");
  REFUSED(nudge_context_detect(NONE, (nudge_strs){NULL, 0}, odd, &error), "`out` is not aligned");
  REFUSED(nudge_view_new(store, NULL, odd, &error), "`out` is not aligned");
  REFUSED(nudge_view_get(view, S("api"), S("kept"), odd, &error), "`out` is not aligned");
  REFUSED(nudge_get(store, &get, odd, &error), "`out` is not aligned");
  REFUSED(nudge_call(store, S("nudge.import"), S("{\"payload\":{\"components\":{\"x\":{\"hints\":{\"y\":\"z\"}}}}}"), NULL,
                     odd, &error),
          "`out` is not aligned");
  REFUSED(nudge_set(store, &set, odd, &error), "`out` is not aligned");
  REFUSED(nudge_bump(store, &bump, odd, &error), "`out` is not aligned");
  REFUSED(nudge_delete(store, &delete, odd, &error), "`out` is not aligned");
  REFUSED(nudge_result_text(result, S("/version"), odd, &error), "`out` is not aligned");
  REFUSED(nudge_result_number(result, S("/hints"), odd, &error), "`out` is not aligned");
  REFUSED(nudge_result_count(result, S(""), odd, &error), "`out` is not aligned");

  /* Pointers for handles and params. */
  nudge_match *other = UNTOUCHED;
  nudge_result *out = UNTOUCHED;
  REFUSED(nudge_get(OFF(store), &get, &other, &error), "`store` is not aligned");
  REFUSED(nudge_get(store, OFF(&get), &other, &error), "nudge_get_params is NULL or not aligned");
  REFUSED(nudge_view_get(OFF(view), S("api"), S("kept"), &other, &error), "`view` is not aligned");
  REFUSED(nudge_view_new(store, OFF(context), &view, &error), "`context` is not aligned");
  REFUSED(nudge_store_new(OFF(&config), (nudge_store **)&out, &error), "nudge_config is NULL or not aligned");
  REFUSED(nudge_call(OFF(store), S("nudge.status"), NONE, NULL, &out, &error), "`store` is not aligned");
  REFUSED(nudge_call(store, S("nudge.status"), NONE, OFF(context), &out, &error), "`context` is not aligned");
  REFUSED(nudge_result_text(OFF(result), S(""), (nudge_str *)&room, &error), "`result` is not aligned");
  get.context = OFF(context);
  REFUSED(nudge_get(store, &get, &other, &error), "`context` is not aligned");
  bump.context = OFF(context);
  REFUSED(nudge_bump(store, &bump, &out, &error), "`context` is not aligned");
  set.confidence = OFF(&room.number);
  REFUSED(nudge_set(store, &set, &out, &error), "`confidence` is not aligned");
  set.confidence = NULL;
  set.if_match_version = OFF(&room.number);
  REFUSED(nudge_set(store, &set, &out, &error), "`if_match_version` is not aligned");
  set.if_match_version = NULL;
  set.tags = (nudge_strs){OFF(&room), 1};
  REFUSED(nudge_set(store, &set, &out, &error), "`tags` is not aligned");
  set.tags = (nudge_strs){NULL, 0};
  CHECK((void *)other == UNTOUCHED && (void *)out == UNTOUCHED);

  /* The pointer for the error is not aligned, so the call is not made. */
  CHECK(nudge_set(store, &set, NULL, odd) == NUDGE_E_INVALID);
  CHECK(nudge_delete(store, &delete, NULL, odd) == NUDGE_E_INVALID);

  /* Pointers for accessors and frees. */
  CHECK(nudge_match_value(OFF(found)).ptr == NULL && nudge_match_json(OFF(found)).ptr == NULL);
  CHECK(nudge_match_version(OFF(found)) == 0 && nudge_match_parts(OFF(found)).priority == 0);
  CHECK(nudge_result_json(OFF(result)).ptr == NULL);
  CHECK(nudge_error_code(OFF(&room)) == 0 && nudge_error_message(OFF(&room)).ptr == NULL);
  nudge_match_free(OFF(found));
  nudge_result_free(OFF(result));
  nudge_view_free(OFF(view));
  nudge_context_free(OFF(context));
  nudge_store_free(OFF(store));
  nudge_error_free(OFF(&room));

  CHECK(is(nudge_match_value(found), "as it was"));
  CHECK(memcmp(&room, &as_it_was, sizeof room) == 0);
  CHECK(stored() == before);
  nudge_match_free(found);
  nudge_result_free(result);
  nudge_view_free(view);
  nudge_context_free(context);
}

int main(void) {
  store = new_store();
  set_text(store, "api", "kept", "as it was");
  null_is_seen_everywhere();
  what_is_not_aligned_is_seen();
  accessors_take_null();
  CHECK(stored() == 1);
  texts_are_checked();
  numbers_are_checked();
  structs_grow();
  calls_are_checked();
  CHECK(stored() == 2);
  secrets_stay_out_of_errors();
  the_library_tells_of_itself();
  nudge_store_free(store);
  return 0;
}
