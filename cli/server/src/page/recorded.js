// What the view of records shows, and the words for it.

export const KINDS = {issue: 'bug fixed', spec: 'plan', arch: 'decision', update: 'improvement'}
export const STATES = ['open', 'resolved', 'archived']

/** What each part of a relevance says, and the most that it can be (semantics section 17). */
export const PARTS = {
  similarity: ['its meaning', 1],
  words: ['words that it holds', 0.4],
  stems: ['how rare these are', 0.6],
  trigrams: ['parts of words', 0.3],
  project: ['it is of this project', 0.1],
}

/** The filters, the rows, why they were found, and what is chosen. */
export const shown = {
  project: '', kind: '', status: '', query: '', projects: [],
  /** Entries of a list, or hits of a search, of which `mode` says how it was made. */
  rows: [], total: 0, next: null, mode: '', degraded: [],
  /** Pairs that may say the same; null while records are listed. */
  pairs: null,
  /** The number of the chosen record, and the record; or the name of the chosen pair. */
  id: null, record: null, pair: null,
}
