import { hostname } from 'node:os'
import { type Event, eventToJson } from '../../engine/event.ts'

/*
 * An event as a syslog message (RFC 5424 §6), ASCII throughout and without a line feed, so that every receiver can take it apart:
 *
 *   <134>1 2026-11-20T09:15:02.123Z edge-7 posture-collector 4711 event [svc@00000 key="TOKEN" id="ID"] {"id":"ID","name":"claude.ai",...}
 *
 * PRI: facility local0 (16), severity informational (6). TIMESTAMP: when the event was last seen.
 */
const PRI = 16 * 8 + 6
const APP_NAME = 'posture-collector'
const MSGID = 'event'
const NILVALUE = '-'
/** RFC 5424 §6: HOSTNAME is at most 255 characters of PRINTUSASCII. */
const HOSTNAME = /^[\x21-\x7e]{1,255}$/

export class SyslogMessages {
  readonly #host: string
  /** Before and behind the host, and up to the id. */
  readonly #sender = `${APP_NAME} ${process.pid} ${MSGID} `
  readonly #token: string

  /** `token` is 7-bit and without `"`, `\` and `]`, as the settings see to. */
  constructor(token: string, host = hostname()) {
    this.#token = token
    this.#host = HOSTNAME.test(host) ? host : NILVALUE
  }

  /** The message for an event; one that would be longer than `bytesMax` goes without HOSTNAME; undefined where that does not help. */
  of(event: Event, bytesMax = Number.POSITIVE_INFINITY): string | undefined {
    const time = new Date(event.lastSeenMs).toISOString()
    const rest = `${this.#sender}[svc@00000 key="${this.#token}" id="${event.id}"] ${asciiJson(eventToJson(event))}`
    const message = `<${PRI}>1 ${time} ${this.#host} ${rest}`
    if (message.length <= bytesMax) return message
    const short = `<${PRI}>1 ${time} ${NILVALUE} ${rest}`
    return short.length <= bytesMax ? short : undefined
  }
}

function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
