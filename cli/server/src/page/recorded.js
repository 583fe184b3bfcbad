// Holds the state of the view of records, and its words.

export const KINDS = {issue: 'bug fixed', spec: 'plan', arch: 'decision', update: 'improvement'}
export const STATES = ['open', 'resolved', 'archived']

/** The words for each part of a relevance, and its maximum (semantics section 17). */
export const PARTS = {
  similarity: ['its meaning', 1],
  words: ['words that it holds', 0.4],
  stems: ['how rare these are', 0.6],
  trigrams: ['parts of words', 0.3],
  project: ['it is of this project', 0.1],
}

/** The filters, the rows, the reasons why they were found, and the choice. */
export const shown = {
  project: '', kind: '', status: '', query: '', projects: [],
  /** Entries of a list, or hits of a search; `mode` is the kind of search. */
  rows: [], total: 0, next: null, mode: '', degraded: [],
  /** Pairs of possible duplicates; null while records are listed. */
  pairs: null,
  /** The number of the chosen record, and the record; or the name of the chosen pair. */
  id: null, record: null, pair: null,
}
