// Generated from the method tables; UPDATE=1 cargo test -p nudge-tests --test typegen writes it anew.
import type { ContextLike } from './index.js'

/** What a method of a source answers. */
export type Answer = { readonly [name: string]: any }

/** Params of `signals.send`. */
export interface SignalsSendParams {
  /** Whom it is for. */
  readonly agent: string
  /** What it asks for. */
  readonly type: 'health_check' | 'stall_warning' | 'priority_change' | 'abort' | 'sync_request' | 'nudge_response'
  /** What it says, at most 4 KiB. Absent: the usual words of its type. */
  readonly message?: string | null
  /** Who sends it. Absent: `NUDGE_AGENT_ID`. */
  readonly from?: string | null
  /** Wait for an answer. */
  readonly requires_response?: boolean | null
  /** Where the sender is. */
  readonly context?: ContextLike
}

/** Params of `signals.check`. */
export interface SignalsCheckParams {
  /** Whose signal. Absent: `NUDGE_AGENT_ID`. */
  readonly agent?: string | null
  /** The `last_seen` of the last answer. */
  readonly last_seen?: string | null
  /** Where the agent is. */
  readonly context?: ContextLike
}

/** Params of `signals.respond`. */
export interface SignalsRespondParams {
  /** Who answers. Absent: `NUDGE_AGENT_ID`. */
  readonly agent?: string | null
  /** What you are at. Absent: that it was received. */
  readonly message?: string | null
  /** Where the agent is. */
  readonly context?: ContextLike
}

/** Params of `signals.list`. */
export interface SignalsListParams {
  /** Where the caller is. */
  readonly context?: ContextLike
}

/**
 * Agents beside you: nudge_signals_send tells one to stop or asks if it is alive; answer with
 * nudge_signals_respond.
 */
export interface SignalsSource {
  /** Tell another agent one urgent thing, such as stop; it replaces the signal it had. */
  send(params: SignalsSendParams): Answer
  /** The signal for you, if it is newer than the one you saw last. */
  check(params?: SignalsCheckParams | null): Answer
  /** Answer the signal for you; due at once where it has requires_response. */
  respond(params?: SignalsRespondParams | null): Answer
  /** Every agent with a signal or with work: what its signal says, what it works on, which question is open. */
  list(params?: SignalsListParams | null): Answer
}

/** What a connected store has besides the hints: a source by its name. */
export interface Sources {
  /**
   * Agents beside you: nudge_signals_send tells one to stop or asks if it is alive; answer with
   * nudge_signals_respond.
   */
  readonly signals: SignalsSource
}
