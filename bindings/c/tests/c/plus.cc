// nudge.h as C++ takes it.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <nudge.h>

namespace {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T *handle) const { Free(handle); }
};

using Store = std::unique_ptr<nudge_store, Freed<nudge_store_free>>;
using Error = std::unique_ptr<nudge_error, Freed<nudge_error_free>>;
using Match = std::unique_ptr<nudge_match, Freed<nudge_match_free>>;

std::string text(nudge_str given) { return std::string(given.ptr, given.len); }
nudge_str given(const std::string &text) { return nudge_str{text.data(), text.size()}; }

}  // namespace

int main() {
  nudge_store *made = nullptr;
  if (nudge_store_new(nullptr, &made, nullptr) != NUDGE_OK) return 1;
  Store store(made);

  const std::string component = "api", key = "build", value = "make";
  nudge_set_params set{};
  set.struct_size = sizeof set;
  set.component = given(component);
  set.key = given(key);
  set.value = given(value);
  set.value_type = NUDGE_VALUE_COMMAND;
  if (nudge_set(store.get(), &set, nullptr, nullptr) != NUDGE_OK) return 2;

  nudge_get_params get{};
  get.struct_size = sizeof get;
  get.component = set.component;
  get.key = set.key;
  nudge_match *found = nullptr;
  if (nudge_get(store.get(), &get, &found, nullptr) != NUDGE_OK) return 3;
  Match match(found);
  if (text(nudge_match_value(match.get())) != value) return 4;

  nudge_error *refusal = nullptr;
  get.key = given(value);
  if (nudge_get(store.get(), &get, &found, &refusal) != NUDGE_E_NOT_FOUND) return 5;
  Error error(refusal);
  return text(nudge_error_reason(error.get())) == "E_NOT_FOUND" ? 0 : 6;
}
