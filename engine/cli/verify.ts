import { chosen } from '../admin/secrets.ts'
import { type Arrival, VERIFY_MS, VERIFY_SINCE_MS, verify } from '../admin/verify.ts'
import { insteadOf } from '../admin/verify-instead.ts'
import { SECOND_MS } from '../kernel/process/clock.ts'
import { duration } from '../kernel/process/duration.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { isHeld } from '../kernel/process/exclusive.ts'
import { wholeNumber } from '../kernel/process/settings.ts'
import { jsonLine, printable } from '../kernel/process/table.ts'
import { SCANS } from '../scan/scan-now.ts'
import type { Store } from '../store/store.ts'
import { type Commands, option, query, timeText } from './command.ts'
import { interruptible } from './long-work.ts'

export const commands: Commands = {
  '': query('', {
    params: {
      token: option(
        '--token <token>',
        'Wait for this monitoring token, by id or prefix; by default any of the organization',
      ),
      sinceMs: option(
        '--since <duration>',
        'Count also what arrived in this time before the start',
        duration('0s', '1h').prefault(`${VERIFY_SINCE_MS / SECOND_MS}s`),
        { defaultAbout: '5m' },
      ),
      timeout: timeoutOption('Wait at most this long'),
    },
    async run({ store, clock, organization, output }, { token, sinceMs, timeout }) {
      const tokens = store.monitoringTokens.ofOrganization(organization.id)
      const wanted = token === undefined ? undefined : chosen(tokens, token, 'monitoring token', clock.nowMs())
      if (wanted === undefined && !tokens.some(({ revokedAtMs }) => revokedAtMs === 0)) {
        throw new Fault(
          'NOT_FOUND',
          `${organization.name} has no active monitoring token; create one with posture-admin token generate`,
        )
      }
      await assertServiceRuns(store)
      const owner = wanted === undefined ? organization.name : `${organization.name}, token ${wanted.label}`
      const labels = new Map(tokens.map(({ id, label }) => [id, label]))
      const startMs = clock.nowMs() - sinceMs
      const tokenIds = new Set(wanted === undefined ? [] : [wanted.id])
      const print = (arrival: Arrival): void => {
        const row = { ...arrival, token_label: labels.get(arrival.tokenId) ?? '' }
        process.stdout.write(`${output.isTable ? arrivalLine(row) : jsonOf(row)}\n`)
      }
      const { result, exitStatus } = await waitForEvents(owner, timeout, (options) =>
        verify(store, organization.id, tokenIds, print, { ...options, sinceMs: startMs }),
      )
      if (result.events > 0) {
        if (process.stderr.isTTY) process.stderr.write(`verified: events of ${owner} are arriving\n`)
        return
      }
      process.exitCode = exitStatus
      if (exitStatus !== undefined) return
      const instead = insteadOf(store, organization, tokenIds, startMs, clock.nowMs())
      const why = instead.map(({ found, next, sample }) => `${found}${sample === '' ? '' : ` (${sample})`}. ${next}`)
      throw new Fault('NO_EVENTS', printable(`no events of ${owner} within ${timeout} s. ${why.join('. ')}`))
    },
  }),
}

export function timeoutOption(about: string) {
  return option('--timeout <seconds>', about, wholeNumber(1, 24 * 3600).default(VERIFY_MS / SECOND_MS))
}

/** Waits for events of an owner, until there are some, Ctrl-C, or the time is over. */
export function waitForEvents<T>(
  owner: string,
  seconds: number,
  wait: (options: { readonly timeoutMs: number; readonly signal: AbortSignal }) => Promise<T>,
) {
  if (process.stderr.isTTY) {
    process.stderr.write(`waiting up to ${seconds} s for events of ${owner}; press Ctrl-C to stop\n`)
  }
  return interruptible((signal) => wait({ timeoutMs: seconds * SECOND_MS, signal }))
}

/** Without a running service, no event can arrive. @throws Fault SERVICE_UNREACHABLE */
export async function assertServiceRuns({ environment: { path } }: Store, otherwise = ''): Promise<void> {
  if (await isHeld(path, SCANS)) return
  throw new Fault('SERVICE_UNREACHABLE', `no posture-service runs on ${path}; start it first${otherwise}`)
}

type Row = Arrival & { readonly token_label: string }

function jsonOf({ timeMs, firstSeenMs: _, tokenId, ...arrival }: Row): string {
  return jsonLine({ time: timeText(timeMs), token_id: tokenId, ...arrival })
}

/** What arrived from one source, for people. */
export function arrivalLine(row: Row): string {
  const { timeMs, listener, address, host, format, messages, events, otherwise, token_label, sample } = row
  const others = Object.entries(otherwise).map(([outcome, count]) => `${count} ${outcome}`)
  const from = [address, host, token_label].filter((part) => part !== '').join(', ')
  const what = [`${messages} messages`, `${events} events`, ...others].join(', ')
  const rest = sample === '' ? '' : `; not understood: ${sample}`
  return printable(`${timeText(timeMs)}  ${listener}  ${from}  ${format}: ${what}${rest}`)
}
