/*
 * Runs many threads on one store, `threads SECONDS`: half of them read through shared handles, and half write. Each
 * answer must be a value that one call wrote as a whole, and each bump must count.
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "kit.h"

/* Calls of every method of the hints, which the tests of other languages also make: tests/fixtures/hammered.json. */
static const struct {
  const char *method, *params;
} calls[] = {
#include "hammered.h"
};

enum { READERS = 4, WRITERS = 4, KEYS = 16 };

static nudge_store *store;
static nudge_view *view;
static nudge_context *context;
static atomic_int stop;
static atomic_ulong reads, writes, bumps;

static void key_of(char *key, unsigned number) { snprintf(key, 16, "key-%u", number % KEYS); }

/* A value holds its key and, twice, its number, so that a torn value is visible. */
static void check_value(const nudge_match *found, const char *key) {
  char text[64], shown[16];
  unsigned first = 0, second = 1;
  nudge_str value = nudge_match_value(found);
  CHECK(value.len < sizeof text);
  memcpy(text, value.ptr, value.len);
  text[value.len] = 0;
  CHECK(sscanf(text, "%15s %u %u", shown, &first, &second) == 3);
  CHECK(!strcmp(shown, key) && first == second);
  CHECK(nudge_match_score(found) > 0 && nudge_match_reason_count(found) > 0);
  CHECK(nudge_match_reason(found, 0).len > 0 && nudge_match_json(found).len > 0);
}

static void *read_all(void *seed) {
  unsigned at = *(unsigned *)seed;
  while (!atomic_load(&stop)) {
    char key[16];
    nudge_match *found = NULL;
    key_of(key, ++at);
    nudge_get_params get = {sizeof get, S("api"), S(key), context};
    nudge_status status =
        at & 1 ? nudge_get(store, &get, &found, NULL) : nudge_view_get(view, get.component, get.key, &found, NULL);
    CHECK(status == NUDGE_OK || status == NUDGE_E_NOT_FOUND);
    if (status == NUDGE_OK) check_value(found, key);
    nudge_match_free(found);
    atomic_fetch_add(&reads, 1);
  }
  return NULL;
}

static void *write_all(void *seed) {
  unsigned at = *(unsigned *)seed;
  while (!atomic_load(&stop)) {
    char key[16], value[64];
    nudge_error *error = NULL;
    key_of(key, ++at);
    snprintf(value, sizeof value, "%s %u %u", key, at, at);
    if (at % 7 == 0) {
      nudge_delete_params delete = {.struct_size = sizeof delete, .component = S("api"), .key = S(key), .all = 1};
      nudge_status status = nudge_delete(store, &delete, NULL, &error);
      CHECK(status == NUDGE_OK || (status == NUDGE_E_NOT_FOUND && nudge_error_code(error) == status));
      nudge_error_free(error);
    } else {
      set_text(store, "api", key, value);
    }
    nudge_bump_params bump = {.struct_size = sizeof bump, .component = S("counted"), .key = S("uses")};
    CHECK(nudge_bump(store, &bump, NULL, NULL) == NUDGE_OK);
    atomic_fetch_add(&bumps, 1);
    nudge_result *result = NULL;
    CHECK(nudge_call(store, S("nudge.query"), S("{\"component\":\"api\"}"), context, &result, NULL) == NUDGE_OK);
    nudge_result_free(result);
    result = NULL;
    size_t one = at % (sizeof calls / sizeof *calls);
    nudge_status status = nudge_call(store, S(calls[one].method), S(calls[one].params), NULL, &result, NULL);
    CHECK(status == NUDGE_OK || status == NUDGE_E_NOT_FOUND || status == NUDGE_E_CONFLICT);
    nudge_result_free(result);
    atomic_fetch_add(&writes, 1);
  }
  return NULL;
}

int main(int count, char **words) {
  double seconds = count > 1 ? strtod(words[1], NULL) : 5;
  pthread_t all[READERS + WRITERS];
  unsigned seeds[READERS + WRITERS];
  nudge_context_params place = {.struct_size = sizeof place, .branch = S("dev")};
  store = new_store();
  CHECK(nudge_context_new(&place, &context, NULL) == NUDGE_OK);
  CHECK(nudge_view_new(store, context, &view, NULL) == NUDGE_OK);
  set_text(store, "counted", "uses", "counts");
  /* All threads try to undo this deletion. */
  set_text(store, "any", "k", "make it");
  nudge_delete_params gone = {.struct_size = sizeof gone, .component = S("any"), .key = S("k")};
  CHECK(nudge_delete(store, &gone, NULL, NULL) == NUDGE_OK);
  for (unsigned at = 0; at < READERS + WRITERS; at++) {
    seeds[at] = at * 7919;
    CHECK(!pthread_create(&all[at], NULL, at < READERS ? read_all : write_all, &seeds[at]));
  }
  struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
  atomic_store(&stop, 1);
  for (unsigned at = 0; at < READERS + WRITERS; at++) CHECK(!pthread_join(all[at], NULL));
  nudge_result *result = NULL;
  double used = 0;
  nudge_str params = S("{\"component\":\"counted\",\"key\":\"uses\"}");
  CHECK(nudge_call(store, S("nudge.get_hint"), params, NULL, &result, NULL) == NUDGE_OK);
  CHECK(nudge_result_number(result, S("/hint/use_count"), &used, NULL) == NUDGE_OK);
  CHECK(used == (double)atomic_load(&bumps));
  nudge_result_free(result);
  printf("%.0f s: %lu reads, %lu rounds of writes on %d + %d threads\n", seconds, atomic_load(&reads),
         atomic_load(&writes), READERS, WRITERS);
  nudge_view_free(view);
  nudge_context_free(context);
  nudge_store_free(store);
  return 0;
}
