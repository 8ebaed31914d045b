/**
 * The SD-ID of the service's STRUCTURED-DATA element, and the names of its parameters
 * (specification, "Ingest").
 */
export const SD_ID = 'svc@00000'
export const TOKEN_PARAM = 'key'

/** PRI of a message that has none: user.notice (RFC 3164 §4.3.3). */
export const PRI_DEFAULT = 13

const NO_TOKEN = new DataView(new ArrayBuffer(0))

/**
 * The offsets of the parts of a syslog message of either RFC. One instance per thread, filled again
 * for each message. A missing part has equal start and end.
 */
export class SyslogMessage {
  pri = PRI_DEFAULT
  timeStart = 0
  timeEnd = 0
  hostStart = 0
  hostEnd = 0
  /** APP-NAME or TAG. */
  appStart = 0
  appEnd = 0
  /** The value of the token's parameter. */
  tokenStart = 0
  tokenEnd = 0
  /**
   * The token of the sender's last message, or none: an element with exactly this token takes the
   * fast path.
   */
  expectedToken: DataView = NO_TOKEN
  /** The token is the expected one. */
  isExpectedToken = false
  /** MSG, without byte order mark and leading blanks. */
  msgStart = 0
  msgEnd = 0

  reset(start: number, end: number): void {
    this.pri = PRI_DEFAULT
    this.timeStart = start
    this.timeEnd = start
    this.hostStart = start
    this.hostEnd = start
    this.appStart = start
    this.appEnd = start
    this.tokenStart = start
    this.tokenEnd = start
    this.isExpectedToken = false
    this.msgStart = start
    this.msgEnd = end
  }
}
