import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { DAY_MS, isoDay, MINUTE_MS } from './clock.ts'
import type { Logger } from './log.ts'

/** Time before the end of a certificate in which it is reported, in milliseconds. */
const WARN_MS = 21 * DAY_MS
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** A PEM file with certificates. */
export interface CertificateFile {
  /** The label of the metric. */
  readonly name: string
  /** '': none. */
  readonly file: string
  /** CA certificates, of which one is enough, as while a CA is replaced. A chain needs each. */
  readonly isCa?: boolean
}

/** Watches when the certificates of a program end: log lines, a metric, reasons to be degraded. */
export class CertificateExpiry {
  readonly #files: () => readonly CertificateFile[]
  readonly #log: Logger
  /** The ends by file, in milliseconds since 1970. Files that became unreadable keep their end. */
  #ends = new Map<CertificateFile, number>()
  #logged: readonly string[] = []
  readonly #timer: NodeJS.Timeout

  constructor(files: () => readonly CertificateFile[], log: Logger) {
    this.#files = files
    this.#log = log
    this.poll()
    this.#timer = setInterval(() => this.poll(), MINUTE_MS).unref()
  }

  /** Reads the files again. Logs each problem once a day, because the text has the days left. */
  poll(nowMs = Date.now()): void {
    const before = [...this.#ends]
    this.#ends = new Map()
    for (const each of this.#files()) {
      const endMs = endOf(each) ?? before.find(([{ file }]) => file === each.file)?.[1]
      if (endMs !== undefined) this.#ends.set(each, endMs)
    }
    const texts = [...this.#ends].map(([{ file }, endMs]) => expiryText(file, endMs, nowMs))
    for (const text of texts) if (text !== '' && !this.#logged.includes(text)) this.#log.warn(text)
    this.#logged = texts
  }

  /** What has expired, one line each. */
  expired(nowMs = Date.now()): string[] {
    const expired = [...this.#ends].filter(([, endMs]) => endMs <= nowMs)
    return expired.map(([{ file }, endMs]) => expiryText(file, endMs, nowMs))
  }

  /** The ends by name, in seconds since 1970. */
  endSeconds(): Record<string, number> {
    return Object.fromEntries([...this.#ends].map(([{ name }, endMs]) => [name, endMs / 1000]))
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

/** The help text of the metric, whose label is `certificate`. */
export const EXPIRY_METRIC_HELP = 'When a certificate ends, in seconds since 1970, by the setting that names its file'

/** One line if the certificates have expired or do in less than 21 days, else ''. */
export function certificateProblem(file: Omit<CertificateFile, 'name'>, nowMs: number): string {
  const endMs = endOf(file)
  return endMs === undefined ? '' : expiryText(file.file, endMs, nowMs)
}

function expiryText(file: string, endMs: number, nowMs: number): string {
  const date = isoDay(endMs)
  if (endMs <= nowMs) return `the certificate in ${file} expired on ${date}; replace it`
  if (endMs - nowMs > WARN_MS) return ''
  const days = Math.floor((endMs - nowMs) / DAY_MS)
  return `the certificate in ${file} expires in ${days} day${days === 1 ? '' : 's'}, on ${date}; replace it`
}

/** undefined for a file that cannot be read, which is reported where it is used. */
function endOf({ file, isCa }: Omit<CertificateFile, 'name'>): number | undefined {
  try {
    const pems = file === '' ? [] : (readFileSync(file, 'latin1').match(PEM) ?? [])
    const ends = pems.map((pem) => Date.parse(new X509Certificate(pem).validTo))
    return ends.length === 0 ? undefined : isCa ? Math.max(...ends) : Math.min(...ends)
  } catch {
    return undefined
  }
}
