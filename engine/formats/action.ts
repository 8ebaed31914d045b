import { ByteSet, KeyTable, LETTERS, textAtIgnoreCase, wordsOf } from './bytes.ts'

/** Whether the device allowed the request that it logged. */
export const Action = { unknown: 0, allowed: 1, blocked: 2 } as const
export type Action = (typeof Action)[keyof typeof Action]

const BLOCKED =
  'block blocked deny denied drop dropped reject rejected refused refuse upstreamblocked upstreamblockedcached cacheblocked reset-both reset-client reset-server reset block-url block-continue block-override override-lockout sinkhole sinkholed redirect always_nxdomain always_null inform_deny always_refuse always_deny block_page quarantine'
const ALLOWED =
  'allow allowed accept accepted pass passed passthrough permit permitted alert continue override monitor monitored warn warned cautioned observed close timeout client-rst server-rst noerror useralert proxied exempt start'

/**
 * Addresses that DNS servers answer for a blocked name: none, the host itself, and the block pages
 * of Umbrella, FortiGuard and PAN-OS (collector/decode/answers.ts has the sources).
 */
const NULL_ADDRESSES = new KeyTable({
  ...{ '0.0.0.0': 0, '::': 0, '127.0.0.1': 0, '::1': 0, '208.91.112.55': 0, '198.135.184.22': 0 },
  ...Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`146.112.61.${104 + index}`, 0])),
  '2001:cdba::3257:9652': 0,
})
const WORDS = new KeyTable({
  ...wordsOf(Action.blocked, BLOCKED),
  ...wordsOf(Action.allowed, ALLOWED),
})

const SUBJECTS = new KeyTable(wordsOf(0, 'access request req connection conn traffic url web session policy'))
const WORD_BYTES_MAX = 32

export function isNullAddress(view: DataView, start: number, end: number): boolean {
  return NULL_ADDRESSES.find(view, start, end) >= 0
}

/**
 * The action of the word in [start, end), from any vendor, or of the word that the text begins
 * with.
 */
export function actionOf(view: DataView, start: number, end: number): Action {
  const found = WORDS.find(view, start, end)
  if (found >= 0) return found as Action
  if (textAtIgnoreCase(view, start, end, 'tcp_denied')) return Action.blocked
  // Cloudflare: `blockedByCategory`, `allowedOnNoRuleMatch`.
  if (textAtIgnoreCase(view, start, end, 'blocked')) return Action.blocked
  if (textAtIgnoreCase(view, start, end, 'allowed')) return Action.allowed
  // `BLOCKED (policy)`, `Access Denied`, `REQ_BLOCK`: the first word, or the second word if the
  // first is a subject.
  const first = wordEnd(view, start, end)
  if (first === end) return Action.unknown
  const isSubject = SUBJECTS.find(view, start, first) >= 0
  const word = isSubject ? first + 1 : start
  const ofWord = WORDS.find(view, word, isSubject ? wordEnd(view, word, end) : first)
  return ofWord >= 0 ? (ofWord as Action) : Action.unknown
}

/** The offset after the word of letters and hyphens that begins at `at`. */
function wordEnd(view: DataView, at: number, end: number): number {
  return WORD_SET.endOf(view, at, Math.min(end, at + WORD_BYTES_MAX))
}
const WORD_SET = new ByteSet(`${LETTERS}-`)
