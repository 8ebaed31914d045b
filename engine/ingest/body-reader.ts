import { isCollectorMessage } from '../formats/collector-json.ts'
import { FORMATS, FormatDetector, NO_FORMAT } from '../formats/formats.ts'
import { writeJsonText } from '../formats/json.ts'
import { type LogLine, Verdict } from '../formats/log-line.ts'
import { type OwnFormat, ownFormat } from '../formats/own-format.ts'
import { SyslogMessage } from './syslog/message.ts'
import { readSyslog } from './syslog/read-message.ts'

const OWN_FORMAT = FORMATS.indexOf(ownFormat)
/** Envelopes around a message that are removed: of a forwarder, and of a container platform. */
const ENVELOPES_MAX = 2

/**
 * Reads the body of a message, or the message of another sender in it: forwarders and container
 * platforms put a line into a JSON object of their own. Its client is the one that the line names.
 */
export class BodyReader {
  /** The index in FORMATS of the last message's format, or NO_FORMAT. */
  format = NO_FORMAT
  /** The custom format of the sender's token, which is tried before all others. */
  own: OwnFormat | undefined
  readonly #detector = new FormatDetector()
  readonly #inner = new SyslogMessage()

  read(line: LogLine, start: number, end: number): Verdict {
    let verdict = this.#readOne(line, start, end)
    let { format } = this
    for (let count = 0; count < ENVELOPES_MAX && line.wrappedStart < line.wrappedEnd; count++) {
      const { reason } = line
      const found = this.#readWrapped(line)
      if (found === Verdict.unknown) {
        line.reason = reason
        this.format = format
        break
      }
      verdict = found
      format = this.format
    }
    return verdict
  }

  #readOne(line: LogLine, start: number, end: number): Verdict {
    if (this.own !== undefined && !isCollectorMessage(line, start, end)) {
      const verdict = this.own.read(line, start, end)
      if (verdict !== Verdict.unknown) {
        this.format = OWN_FORMAT
        return verdict
      }
    }
    const verdict = this.#detector.read(line, start, end)
    this.format = this.#detector.format
    return verdict
  }

  #readWrapped(line: LogLine): Verdict {
    const { bytes, timeMs, timeIsLocal, unwrappedStart: start } = line
    const inner = this.#inner
    const end = writeJsonText(bytes, line.wrappedStart, line.wrappedEnd, start)
    if (end === start) return Verdict.unknown
    readSyslog(line.view, start, end, inner, line.referenceMs)
    if (inner.msgStart === end) return Verdict.unknown
    const verdict = this.#readOne(line, inner.msgStart, end)
    if (verdict !== Verdict.event || !Number.isNaN(line.timeMs)) return verdict
    // The sender's header has its time, the envelope the forwarder's.
    if (inner.timeStart < inner.timeEnd) line.takeTime(inner.timeStart, inner.timeEnd)
    if (Number.isNaN(line.timeMs)) {
      line.timeMs = timeMs
      line.timeIsLocal = timeIsLocal
    }
    return verdict
  }
}
