/*
 * Makes, uses and frees every kind of handle, `lifetimes N` times, and checks that the memory does not grow. Handles
 * are freed in changing orders, because none depends on another.
 */
#define _POSIX_C_SOURCE 200809L

#include <unistd.h>

#include "kit.h"

/* Returns resident memory in pages; 0 if the system does not report it. */
static long resident(void) {
  long size = 0, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (fscanf(file, "%ld %ld", &size, &pages) != 2) pages = 0;
  fclose(file);
  return pages;
}

static void once(size_t turn) {
  nudge_store *store = new_store();
  nudge_context *context = NULL;
  nudge_view *view = NULL;
  nudge_match *found = NULL, *seen = NULL;
  nudge_result *result = NULL;
  nudge_error *error = NULL;
  nudge_str branch = S("dev"), tag = S("t");
  nudge_scope scope = {.struct_size = sizeof scope, .branch = {&branch, 1}};
  nudge_set_params set = {.struct_size = sizeof set,
                          .component = S("api"),
                          .key = S("build"),
                          .value = S("make"),
                          .tags = {&tag, 1},
                          .scope = &scope};
  CHECK(nudge_set(store, &set, &result, &error) == NUDGE_OK);
  nudge_context_params place = {.struct_size = sizeof place, .branch = branch};
  CHECK(nudge_context_new(&place, &context, &error) == NUDGE_OK);
  nudge_get_params get = {sizeof get, S("api"), S("build"), context};
  CHECK(nudge_get(store, &get, &found, &error) == NUDGE_OK);
  CHECK(nudge_view_new(store, context, &view, &error) == NUDGE_OK);
  CHECK(nudge_view_get(view, get.component, get.key, &seen, &error) == NUDGE_OK);
  CHECK(nudge_match_reason_count(found) == 1 && nudge_match_json(seen).len > 0);
  get.key = S("run");
  CHECK(nudge_get(store, &get, &found, &error) == NUDGE_E_NOT_FOUND && nudge_error_data(error).len > 0);
  if (turn & 1) {
    nudge_store_free(store);
    nudge_context_free(context);
    nudge_match *late = NULL;
    CHECK(nudge_view_get(view, S("api"), S("build"), &late, NULL) == NUDGE_OK);
    nudge_match_free(late);
  }
  if (turn & 2) nudge_view_free(view);
  CHECK(is(nudge_match_value(found), "make") && is(nudge_match_value(seen), "make"));
  nudge_match_free(seen);
  if (!(turn & 2)) nudge_view_free(view);
  if (!(turn & 1)) {
    nudge_context_free(context);
    nudge_store_free(store);
  }
  CHECK(nudge_result_json(result).len > 0);
  nudge_result_free(result);
  nudge_match_free(found);
  nudge_error_free(error);
}

int main(int count, char **words) {
  size_t turns = count > 1 ? (size_t)strtoull(words[1], NULL, 10) : 1000, warm = turns / 10;
  for (size_t turn = 0; turn < warm; turn++) once(turn);
  long before = resident();
  for (size_t turn = warm; turn < turns; turn++) once(turn);
  long after = resident();
  printf("%zu lives, %ld KiB resident, %+ld KiB since the first tenth\n", turns,
         after * (sysconf(_SC_PAGESIZE) / 1024), (after - before) * (sysconf(_SC_PAGESIZE) / 1024));
  /* A leak of one byte in each turn is a megabyte after a million turns; few turns prove nothing. */
  CHECK(turns < 100000 || (after - before) * sysconf(_SC_PAGESIZE) < 512 * 1024);
  return 0;
}
