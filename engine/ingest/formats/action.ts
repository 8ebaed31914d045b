import { foldedTextAt } from './bytes.ts'
import { KeyTable } from './key-table.ts'

/** What the device did with the request that it logged. */
export const Action = { unknown: 0, allowed: 1, blocked: 2 } as const
export type Action = (typeof Action)[keyof typeof Action]

const BLOCKED =
  'block blocked deny denied drop dropped reject rejected refused refuse reset-both reset-client reset-server reset block-url block-continue block-override override-lockout sinkhole sinkholed redirect always_nxdomain always_null inform_deny always_refuse always_deny block_page quarantine'
const ALLOWED =
  'allow allowed accept accepted pass passed passthrough permit permitted alert continue override monitor monitored warn warned cautioned observed close timeout client-rst server-rst noerror useralert proxied exempt start'

const WORDS = new KeyTable({
  ...Object.fromEntries(BLOCKED.split(' ').map((word) => [word, Action.blocked])),
  ...Object.fromEntries(ALLOWED.split(' ').map((word) => [word, Action.allowed])),
})

/** The action that the word in [start, end) stands for, of any vendor. */
export function actionOf(view: DataView, start: number, end: number): Action {
  const found = WORDS.find(view, start, end)
  if (found >= 0) return found as Action
  return foldedTextAt(view, start, end, 'tcp_denied') ? Action.blocked : Action.unknown
}
