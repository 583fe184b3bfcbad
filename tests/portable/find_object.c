/* Gives GCC's unwinder the function of glibc that finds the frame data of a function, in a static program with musl. */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>

/* The struct is that of glibc's <dlfcn.h> for x86-64. */
struct dl_find_object {
  unsigned long long flags;
  void *begin, *end;
  struct link_map *map;
  void *eh_frame;
  unsigned long long reserved[7];
};

static int look(struct dl_phdr_info *info, size_t size, void *into) {
  struct dl_find_object *found = into;
  size_t at = (size_t)found->begin;
  int is_here = 0;
  (void)size;
  for (int n = 0; n < info->dlpi_phnum; n++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[n];
    size_t begin = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_LOAD && at >= begin && at < begin + part->p_memsz) {
      is_here = 1;
      found->end = (void *)(begin + part->p_memsz);
    }
    if (part->p_type == PT_GNU_EH_FRAME) found->eh_frame = (void *)begin;
  }
  return is_here && found->eh_frame != NULL;
}

int _dl_find_object(void *at, struct dl_find_object *found) {
  *found = (struct dl_find_object){.begin = at};
  return dl_iterate_phdr(look, found) ? 0 : -1;
}
