import type { Matcher } from '../../../registry/match.ts'
import { NO_CLIENT } from '../../event/client.ts'
import type { LineReading } from '../../ingest/read-log.ts'
import { jsonLine } from '../../process/table.ts'

/** In the order of Verdict. */
const VERDICTS = ['unknown', 'event', 'no_domain', 'skipped', 'rejected', 'ambiguous'] as const

/** Prints what was understood of each line of a file as NDJSON. */
export class NamesPrinter {
  readonly #file: string
  readonly #matcher: Matcher
  #lines = ''

  constructor(file: string, matcher: Matcher) {
    this.#file = file
    this.#matcher = matcher
  }

  add({ line, verdict, timeMs, client, host, format, reason }: LineReading): void {
    const rule = host === '' ? undefined : this.#matcher.match(host)
    this.#lines += `${jsonLine({
      file: this.#file,
      line,
      verdict: VERDICTS[verdict],
      time: Number.isNaN(timeMs) ? null : new Date(timeMs).toISOString(),
      client: client === NO_CLIENT ? null : client,
      host: host.toLowerCase(),
      platform: rule?.platform.id ?? null,
      format,
      reason,
    })}\n`
  }

  /** Called after each part of the file. */
  flush(): void {
    if (this.#lines === '') return
    process.stdout.write(this.#lines)
    this.#lines = ''
  }
}
