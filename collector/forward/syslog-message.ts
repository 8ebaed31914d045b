import { hostname } from 'node:os'
import { type CoverageReport, coverageReportToJson } from '../../engine/event/coverage-report.ts'
import { type Event, eventToJson } from '../../engine/event/event.ts'

/*
 * An event as a syslog message (RFC 5424 §6), ASCII throughout and without a line feed, so that every receiver can take it apart:
 *
 *   <134>1 2026-11-20T09:15:02.123Z edge-7 posture-collector 4711 event [svc@00000 key="TOKEN" id="ID"] {"id":"ID","name":"claude.ai",...}
 *
 * PRI: facility local0 (16), severity informational (6). TIMESTAMP: when the event was last seen. A coverage report differs in its MSGID
 * and its content, and has no id; its TIMESTAMP is when it was made:
 *
 *   <134>1 2026-11-20T09:15:02.123Z edge-7 posture-collector 4711 coverage [svc@00000 key="TOKEN"] {"coverage":{"instance":...}}
 */
const PRI = 16 * 8 + 6
const APP_NAME = 'posture-collector'
const NILVALUE = '-'
/** RFC 5424 §6: HOSTNAME is at most 255 characters of PRINTUSASCII. */
const HOSTNAME = /^[\x21-\x7e]{1,255}$/

export class SyslogMessages {
  readonly #host: string
  /** Between the host and the MSGID. */
  readonly #sender = `${APP_NAME} ${process.pid}`
  readonly #token: string

  /** `token` is 7-bit and without `"`, `\` and `]`, as the settings see to. */
  constructor(token: string, host = hostname()) {
    this.#token = token
    this.#host = HOSTNAME.test(host) ? host : NILVALUE
  }

  /** The message for an event; one that would be longer than `bytesMax` goes without HOSTNAME; undefined where that does not help. */
  of(event: Event, bytesMax = Number.POSITIVE_INFINITY): string | undefined {
    const json = ascii(JSON.stringify(eventToJson(event)))
    const rest = `${this.#sender} event [svc@00000 key="${this.#token}" id="${event.id}"] ${json}`
    return this.#message(event.lastSeenMs, rest, bytesMax)
  }

  /** The same for a coverage report. */
  ofCoverage(report: CoverageReport, bytesMax = Number.POSITIVE_INFINITY): string | undefined {
    const json = JSON.stringify({ coverage: coverageReportToJson(report) })
    const rest = `${this.#sender} coverage [svc@00000 key="${this.#token}"] ${json}`
    return this.#message(report.madeMs, rest, bytesMax)
  }

  #message(timeMs: number, rest: string, bytesMax: number): string | undefined {
    const time = new Date(timeMs).toISOString()
    const message = `<${PRI}>1 ${time} ${this.#host} ${rest}`
    if (message.length <= bytesMax) return message
    const short = `<${PRI}>1 ${time} ${NILVALUE} ${rest}`
    return short.length <= bytesMax ? short : undefined
  }
}

function ascii(json: string): string {
  return json.replace(/[^\x20-\x7e]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
