'use strict'

// Loads the native half: the file that `npm run build` puts here, or a package for one platform.

/** Returns the names of the binaries for this machine; only the one for the right C library can be loaded. */
function platforms() {
  const { platform, arch } = process
  const suffixes = { linux: ['-gnu', '-musl'], win32: ['-msvc'] }[platform] ?? ['']
  return suffixes.map((suffix) => `${platform}-${arch}${suffix}`)
}

function load() {
  // A test may load another build.
  if (process.env.NUDGE_NODE_LIBRARY) return require(process.env.NUDGE_NODE_LIBRARY)
  const failures = []
  for (const platform of platforms()) {
    for (const path of [`./nudge.${platform}.node`, `nudge-hints-${platform}`]) {
      try {
        return require(path)
      } catch (failure) {
        failures.push(failure)
      }
    }
  }
  // A file that exists and does not load is a better cause than a missing file.
  const [cause] = failures.sort((a, b) => Number(a.code === 'MODULE_NOT_FOUND') - Number(b.code === 'MODULE_NOT_FOUND'))
  const why = cause.code === 'MODULE_NOT_FOUND' ? 'there is none' : cause.message
  throw new Error(
    `nudge-hints finds no binary for ${platforms()[0]} (${why}); install it without --omit=optional, or build one with \`npm run build\` in bindings/node of a clone of its repository.`,
    { cause }
  )
}

module.exports = load()
