/*
 * Checks that no entry point lets a panic out. The library is built with `test-clock`, whose nudge_test_panic makes
 * each entry point panic. `check` compares the names here with those of the header.
 */
#include "kit.h"

void nudge_test_panic(uint32_t on);

static nudge_error *error;

/* Checks the status, the error object with the code of a defect, and that there is no output. */
static int internal(nudge_status status) {
  int right = status == NUDGE_E_INTERNAL && nudge_error_code(error) == NUDGE_E_INTERNAL &&
              is(nudge_error_reason(error), "E_INTERNAL") && holds(nudge_error_message(error), "defect") &&
              holds(nudge_error_data(error), "E_INTERNAL");
  nudge_error_free(error);
  error = NULL;
  return right;
}

int main(void) {
  nudge_store *store = new_store(), *no_store = NULL;
  set_text(store, "api", "build", "make");
  nudge_context *context = NULL, *no_context = NULL;
  nudge_context_params place = {.struct_size = sizeof place, .branch = S("dev")};
  CHECK(nudge_context_new(&place, &context, NULL) == NUDGE_OK);
  nudge_view *view = NULL, *no_view = NULL;
  CHECK(nudge_view_new(store, context, &view, NULL) == NUDGE_OK);
  nudge_match *found = NULL, *no_match = NULL;
  nudge_get_params get = {sizeof get, S("api"), S("build"), context};
  CHECK(nudge_get(store, &get, &found, NULL) == NUDGE_OK);
  nudge_result *result = NULL, *no_result = NULL;
  nudge_set_params set = {
      .struct_size = sizeof set, .component = S("api"), .key = S("other"), .value = S("make")};
  CHECK(nudge_set(store, &set, &result, NULL) == NUDGE_OK);
  nudge_bump_params bump = {.struct_size = sizeof bump, .component = S("api"), .key = S("build")};
  nudge_delete_params delete = {.struct_size = sizeof delete, .component = S("api"), .key = S("build")};
  nudge_str none = {NULL, 0}, text = none, status = S("nudge.status"), pointer = S("/variants");
  double number = 0;
  size_t count = 0;
  nudge_error *known = NULL;
  CHECK(nudge_get(NULL, &get, &no_match, &known) == NUDGE_E_INVALID);

  /* Messages of panics go to stderr; this test does not read them. */
  CHECK(freopen("/dev/null", "w", stderr));
#define PANICS(call)                                               \
  do {                                                             \
    nudge_test_panic(1);                                           \
    nudge_status code = call;                                      \
    nudge_test_panic(0);                                           \
    if (!internal(code)) return printf("%s\n", #call), 1;          \
  } while (0)
#define EMPTY(value)                                               \
  do {                                                             \
    nudge_test_panic(1);                                           \
    int empty = !(value);                                          \
    nudge_test_panic(0);                                           \
    if (!empty) return printf("%s\n", #value), 1;                  \
  } while (0)
  PANICS(nudge_store_new(NULL, &no_store, &error));
  PANICS(nudge_connect(none, none, &no_store, &error));
  PANICS(nudge_call(store, status, none, NULL, &no_result, &error));
  PANICS(nudge_context_new(&place, &no_context, &error));
  PANICS(nudge_context_detect(none, (nudge_strs){NULL, 0}, &no_context, &error));
  PANICS(nudge_view_new(store, context, &no_view, &error));
  PANICS(nudge_view_get(view, get.component, get.key, &no_match, &error));
  PANICS(nudge_get(store, &get, &no_match, &error));
  PANICS(nudge_set(store, &set, &no_result, &error));
  PANICS(nudge_bump(store, &bump, &no_result, &error));
  PANICS(nudge_delete(store, &delete, &no_result, &error));
  PANICS(nudge_result_text(result, pointer, &text, &error));
  PANICS(nudge_result_number(result, pointer, &number, &error));
  PANICS(nudge_result_count(result, pointer, &count, &error));
  EMPTY(nudge_result_json(result).ptr);
  EMPTY(nudge_match_value(found).ptr);
  EMPTY(nudge_match_value_type(found));
  EMPTY(nudge_match_variant(found).ptr);
  EMPTY(nudge_match_version(found));
  EMPTY(nudge_match_is_secret(found));
  EMPTY(nudge_match_score(found) > 0);
  EMPTY(nudge_match_parts(found).priority > 0);
  EMPTY(nudge_match_reason_count(found));
  EMPTY(nudge_match_reason(found, 0).ptr);
  EMPTY(nudge_match_json(found).ptr);
  EMPTY(nudge_error_code(known));
  EMPTY(nudge_error_reason(known).ptr);
  EMPTY(nudge_error_message(known).ptr);
  EMPTY(nudge_error_data(known).ptr);
  EMPTY(nudge_method_count());
  EMPTY(nudge_method_name(0).ptr);
  EMPTY(nudge_cstr("x").ptr);
  if (no_store || no_context || no_view || no_match || no_result || text.ptr || number != 0 || count) return 1;

  /* The store is unchanged, and calls work again. */
  CHECK(nudge_get(store, &get, &no_match, NULL) == NUDGE_OK && nudge_match_version(no_match) == 1);
  CHECK(nudge_version().len && nudge_abi_version());
  nudge_match_free(no_match);
  /* A panic while freeing is stopped as well; the handle may or may not be freed. */
  nudge_test_panic(1);
  nudge_error_free(known);
  nudge_match_free(found);
  nudge_result_free(result);
  nudge_view_free(view);
  nudge_context_free(context);
  nudge_store_free(store);
  nudge_test_panic(0);
  return 0;
}
