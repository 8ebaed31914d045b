import { type Command, Option } from 'commander'
import { SECOND_MS } from '../../process/clock.ts'
import { durationOption } from '../../process/duration.ts'
import { Fault } from '../../process/error-codes.ts'
import { isHeld } from '../../process/exclusive.ts'
import { exitStatusOf, stopSignal } from '../../process/shutdown.ts'
import { jsonLine, printable } from '../../process/table.ts'
import { SCANS } from '../../scan/scan-now.ts'
import { chosen } from '../secrets.ts'
import { type Arrival, VERIFY_MS, VERIFY_SINCE_MS, verify } from '../verify.ts'
import { insteadOf } from '../verify-instead.ts'
import { type AdminContext, countOption, ofOrganization, sharedOptions, timeText, withStore } from './context.ts'

interface Options {
  readonly org?: string
  readonly token?: string
  readonly since: number
  readonly timeout: number
  readonly json?: boolean
}

/** posture-admin verify */
export function addVerifyCommand(command: Command): void {
  ofOrganization(sharedOptions(command))
    .option(
      '--token <token>',
      'Wait for this monitoring token, by id or 8 visible digits; by default any of the organization',
    )
    .addOption(
      new Option('--since <duration>', 'Count also what arrived in this time before the start')
        .default(VERIFY_SINCE_MS, '5m')
        .argParser(durationOption('0s', '1h')),
    )
    .addOption(
      new Option('--timeout <seconds>', 'Wait at most this long')
        .default(VERIFY_MS / SECOND_MS)
        .argParser(countOption(1, 24 * 3600)),
    )
  command.action((options: Options) => withStore(command, (context) => waitForEvents(context, options)))
}

async function waitForEvents({ store, administration, clock }: AdminContext, options: Options): Promise<void> {
  const organization = administration.organization(options.org)
  const tokens = store.monitoringTokens.ofOrganization(organization.id)
  const wanted =
    options.token === undefined ? undefined : chosen(tokens, options.token, 'monitoring token', clock.nowMs())
  if (wanted === undefined && !tokens.some(({ revokedAtMs }) => revokedAtMs === 0)) {
    throw new Fault(
      'NOT_FOUND',
      `${organization.name} has no active monitoring token; create one with posture-admin token generate`,
    )
  }
  await assertServiceRuns(store.environment.path)

  const owner = wanted === undefined ? organization.name : `${organization.name}, token ${wanted.label}`
  if (process.stderr.isTTY) {
    process.stderr.write(`waiting up to ${options.timeout} s for events of ${owner}; press Ctrl-C to stop\n`)
  }
  const labels = new Map(tokens.map(({ id, label }) => [id, label]))
  const asJson = options.json === true || !process.stdout.isTTY
  const stop = stopSignal()
  const cancel = new AbortController()
  void stop.received.then(() => cancel.abort())
  const sinceMs = clock.nowMs() - options.since
  const tokenIds = new Set(wanted === undefined ? [] : [wanted.id])
  const verdict = await verify(
    store,
    organization.id,
    tokenIds,
    (arrival) => {
      const row = { ...arrival, token_label: labels.get(arrival.tokenId) ?? '' }
      process.stdout.write(`${asJson ? jsonOf(row) : arrivalLine(row)}\n`)
    },
    { sinceMs, timeoutMs: options.timeout * SECOND_MS, signal: cancel.signal },
  ).finally(() => stop.forget())

  if (verdict.events > 0) {
    if (process.stderr.isTTY) process.stderr.write(`verified: events of ${owner} are arriving\n`)
    return
  }
  if (cancel.signal.aborted) {
    process.exitCode = exitStatusOf(await stop.received)
    return
  }
  const instead = insteadOf(store, organization, tokenIds, sinceMs, clock.nowMs())
  const why = instead.map(({ found, next, sample }) => `${found}${sample === '' ? '' : ` (${sample})`}. ${next}`)
  throw new Fault('NO_EVENTS', printable(`no events of ${owner} within ${options.timeout} s. ${why.join('. ')}`))
}

/** Without a running service, no event can arrive. */
async function assertServiceRuns(path: string): Promise<void> {
  if (await isHeld(path, SCANS)) return
  throw new Fault('SERVICE_UNREACHABLE', `no posture-service runs on ${path}; start it first`)
}

type Row = Arrival & { readonly token_label: string }

function jsonOf({ timeMs, firstSeenMs: _, tokenId, ...arrival }: Row): string {
  return jsonLine({ time: timeText(timeMs), token_id: tokenId, ...arrival })
}

/** What arrived from one source, for people. */
export function arrivalLine({
  timeMs,
  listener,
  address,
  host,
  format,
  messages,
  events,
  otherwise,
  token_label,
  sample,
}: Row): string {
  const others = Object.entries(otherwise).map(([outcome, count]) => `${count} ${outcome}`)
  const from = [address, host, token_label].filter((part) => part !== '').join(', ')
  const what = [`${messages} messages`, `${events} events`, ...others].join(', ')
  return printable(
    `${timeText(timeMs)}  ${listener}  ${from}  ${format}: ${what}${sample === '' ? '' : `; not understood: ${sample}`}`,
  )
}
